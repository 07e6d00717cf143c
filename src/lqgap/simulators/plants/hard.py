"""Small classes that are hard to learn: members are hard to distinguish and need opposite inputs.

    unknown_sign:   A = pole ,     B = sign gain ,                     C = 1
    phase_pair:     A = [[1, 1], [0, 1]] ,   B = [0, 1]' ,             C = [1 - zero, 1] / sqrt(zero)
    overactuated:   A = pole ,     B = [gain, sign c horizon^-1/4] ,   C = 1

The transfer function of phase_pair is (s - zero) / (sqrt(zero) (s - 1)^2): members with `zero` and 1 / `zero`
differ in phase and not in magnitude.
"""

from typing import Any

import jax.numpy as jnp

from lqgap.simulators.box import ParameterBox
from lqgap.simulators.plants.quantities import Extent, make_family, plus_or_minus, positive, real, whole
from lqgap.systems import LQG

SIGNS = [-1, 1]
MIRRORED_ZEROS = [1.01**-2, 1.01**2]


def unknown_sign(*, sign: Extent = SIGNS, pole: Extent = 0.95, gain: Extent = 1.0) -> ParameterBox:
    """A first-order plant of which it is unknown whether an input pushes or pulls.

    Args:
        sign: 1 or -1, or the list of both.
        pole: A, the part of the state that is left after a step.
        gain: size of B.
    """

    def build(sign: Any, pole: Any, gain: Any) -> LQG:
        return LQG([[pole]], [[sign * gain]], [[1.0]])

    return make_family(build, {"sign": plus_or_minus(sign), "pole": real(pole), "gain": positive(gain)})


def phase_pair(*, zero: Extent = MIRRORED_ZEROS) -> ParameterBox:
    """A double integrator with a zero just inside or just outside of the unit circle, and little noise.

    Args:
        zero: where the zero is; below 1 the plant is minimum phase. At 1 it has no optimum.
    """

    def build(zero: Any) -> LQG:
        root = jnp.sqrt(zero)
        return LQG(
            [[1.0, 1.0], [0.0, 1.0]],
            [[0.0], [1.0]],
            [[(1 - zero) / root, 1 / root]],
            R=[[1e-2]],
            W=1e-4 * jnp.eye(2),
            V=[[1e-2]],
        )

    return make_family(build, {"zero": positive(zero)})


def overactuated(
    *,
    sign: Extent = SIGNS,
    horizon: Extent = 400,
    c: Extent = 0.5,
    pole: Extent = 0.9,
    gain: Extent = 0.6,
) -> ParameterBox:
    """The lower bound's class: a second input so weak that its sign takes a whole horizon to learn.

    Args:
        sign: of the second input: 1 or -1, or the list of both.
        horizon: number of steps to which the size c horizon^-1/4 of the second input is fitted.
        c: size of the second input at horizon 1.
        pole: A, the part of the state that is left after a step.
        gain: effect of the first input.
    """

    def build(sign: Any, horizon: Any, c: Any, pole: Any, gain: Any) -> LQG:
        return LQG([[pole]], [[gain, sign * c * horizon**-0.25]], [[1.0]])

    return make_family(
        build,
        {
            "sign": plus_or_minus(sign),
            "horizon": whole(horizon, "steps", least=1),
            "c": positive(c),
            "pole": real(pole),
            "gain": real(gain),
        },
    )
