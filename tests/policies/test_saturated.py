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
