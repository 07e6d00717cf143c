import functools

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import StationaryLQG
from lqgap.policies.limits import read_limits
from lqgap.training import find_worst


@functools.cache
def free():
    return read_limits(None, num_inputs=1)


def build(pole, gain):
    return lg.LQG([[pole]], [[gain]], [[1.0]])


@pytest.mark.parametrize(("is_traceable", "ends"), [(True, True), (False, True), (True, False)])
def test_the_worst_member_of_a_box_is_found(is_traceable, ends):
    def build_plainly(pole, gain):
        return build(float(pole), float(gain))

    family = lg.simulators.ParameterBox(
        build if is_traceable else build_plainly, {"pole": (0.5, 0.95), "gain": (0.5, 2.0)}
    )
    policy = StationaryLQG(build(0.7, 1.0))
    theta, gaps = find_worst(
        policy, family, jax.random.key(0), horizon=30, limits=free(), num_rollouts=8, ends=ends
    )
    everywhere = family.grid(15)
    worst = max(
        float(lg.exact_gap(policy, plant, horizon=30, ends=ends))
        for plant in map(everywhere.__getitem__, range(225))
    )
    found = float(lg.exact_gap(policy, family.system(theta[0]), horizon=30, ends=ends))
    assert found > (0.98 if is_traceable else 0.6) * worst
    assert np.all(np.diff(gaps.mean) <= 0)
