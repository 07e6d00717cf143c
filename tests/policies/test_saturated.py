import jax
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.policies import Saturated, StationaryLQG

LIMITS = (-0.3, [0.3], 0.1)


@pytest.fixture(scope="module")
def plant():
    return random_plant(0, inputs=1)


def test_a_saturated_policy_is_the_policy_under_limits(plant):
    policy, how = StationaryLQG(plant), {"horizon": 40, "key": jax.random.key(0)}
    inside, outside = (
        lg.rollout(Saturated(policy, LIMITS), plant, **how),
        lg.rollout(policy, plant, limits=LIMITS, **how),
    )
    np.testing.assert_array_equal(inside.u, outside.u)
    moves = np.abs(np.diff(np.asarray(inside.u)[:, 0], prepend=0.0))
    assert moves.max() == pytest.approx(0.1, rel=1e-12)
    assert np.abs(inside.u).max() <= 0.3
    gaps = [
        lg.gap(each, plant, num_rollouts=64, limits=limits, **how).mean
        for each, limits in ((Saturated(policy, LIMITS), None), (policy, LIMITS))
    ]
    np.testing.assert_allclose(*gaps, rtol=1e-12)


def test_a_file_keeps_the_limits(plant, tmp_path):
    policy = Saturated(StationaryLQG(plant), (-0.3, np.inf, 0.1))
    lg.save_policy(tmp_path / "policy.safetensors", policy)
    loaded = lg.load_policy(tmp_path / "policy.safetensors")
    controller = lg.Controller(loaded)
    inputs = [
        float(controller(y)[0]) for y in 100 * np.random.default_rng(0).normal(size=(20, plant.num_outputs))
    ]
    assert min(inputs) >= -0.3
    assert max(np.abs(np.diff(inputs))) <= 0.1 + 1e-12


def servo(inertia):
    """Angle, speed and current of a motor in SI units, read by an encoder of 2000 counts, at 100 Hz."""
    A = [[0, 1, 0], [0, -5e-5 / inertia, 0.05 / inertia], [0, -100, -2000]]
    W, V = np.diag([1e-6, 1.0, 1e-2]), [[(2 * np.pi / 2000) ** 2 / 12]]
    written = lg.LQG(A, [[0], [0], [2000]], [[1, 0, 0]], Q=[[1000]], R=[[0.01]], W=W, V=V)
    return lg.discretize(written, dt=0.01)


@pytest.mark.slow
def test_a_loop_that_diverges_without_limits_is_bounded_by_them():
    nominal, corners = StationaryLQG(servo(1.25e-4)), lg.stack([servo(0.5e-4), servo(2e-4)])

    def gaps(limits):
        how = {"horizon": 300, "key": jax.random.key(0), "num_rollouts": 64, "ends": False}
        return lg.gap(Saturated(nominal, limits), corners, **how).mean

    free, limited, slow = (gaps(limits) for limits in ((-np.inf, np.inf), (-24, 24), (-24, 24, 20)))
    assert free[0] > 1e20
    assert limited[0] < slow[0] < 1e7
    assert free[1] < limited[1] < slow[1] < 1e4
