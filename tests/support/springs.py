"""A small family that several tests share: a mass on a spring, S20 of the reference figures."""

import functools

import lqgap
from lqgap.simulators import ParameterBox
from lqgap.systems import zero_order_hold


def build(stiffness, gain):
    A, B = zero_order_hold([[0.0, 1.0], [-stiffness, -0.5]], [[0.0], [gain]], dt=0.3)
    return lqgap.LQG(A, B, [[1.0, 0.0]], R=[[0.1]])


FAMILY = ParameterBox(build, {"stiffness": (0.5, 4.0), "gain": (1.0, 5.0)}, units={"stiffness": "N/m"})


@functools.cache
def grid(points):
    """The members on a grid, made once."""
    return FAMILY.grid(points)
