import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY

import lqgap
from lqgap.evaluation.exact import close_loop
from lqgap.interop.spaces import input_scale, make_spaces, read_bounds
from lqgap.policies import StationaryLQG


def test_observations_are_unbounded_and_limits_bound_actions():
    observations, actions = make_spaces(lqgap.stack([random_plant(0)]), ([-1.0, -2.0], 3.0))
    assert observations.shape == (2,)
    assert np.all(np.isinf(observations.low))
    np.testing.assert_array_equal(actions.low, [-1.0, -2.0])
    np.testing.assert_array_equal(actions.high, [3.0, 3.0])
    assert observations.dtype == actions.dtype == np.float64


def test_without_limits_any_input_passes_but_the_space_of_actions_is_finite():
    plant = lqgap.stack([random_plant(0)])
    low, high = read_bounds(None, num_inputs=2)
    assert np.all(low == -np.inf)
    assert np.all(high == np.inf)
    _, actions = make_spaces(plant, None)
    np.testing.assert_allclose(actions.high, 5 * input_scale(plant))
    np.testing.assert_allclose(actions.low, -actions.high)


def test_the_scale_is_that_of_the_closed_loop_in_the_long_run_when_it_starts_at_rest(seed):
    random = random_plant(seed, radius=1.05)
    weights = {name: getattr(random, name) for name in ("Q", "R", "W", "V")}
    plant = lqgap.LQG(random.A, random.B, random.C, S0=np.zeros((3, 3)), **weights)
    policy = StationaryLQG(plant, filters="steady")
    loop, step = close_loop(policy.at(0), plant), policy.at(0)
    Pi = np.zeros_like(loop.noise)
    for _ in range(2000):
        Pi = loop.transition @ Pi @ loop.transition.T + loop.noise
    from_joint = np.hstack([step.Dc @ plant.C, step.Cc])
    covariance = from_joint @ Pi @ from_joint.T + step.Dc @ plant.V @ step.Dc.T
    np.testing.assert_allclose(input_scale(lqgap.stack([plant])), np.sqrt(np.diagonal(covariance)), rtol=1e-8)


def test_the_largest_member_counts_and_an_input_that_is_never_used_has_scale_one():
    members = FAMILY.grid(2).systems
    each = [input_scale(lqgap.stack([plant])) for plant in FAMILY.grid(2)]
    np.testing.assert_allclose(input_scale(members), np.max(each, axis=0), rtol=1e-10)
    idle = lqgap.LQG([[0.5]], [[1.0]], [[1.0]], Q=[[0.0]])
    np.testing.assert_array_equal(input_scale(lqgap.stack([idle])), [1.0])


def test_plants_without_an_optimum_need_limits():
    hopeless = lqgap.stack([lqgap.LQG([[2.0]], [[0.0]], [[1.0]])])
    with pytest.raises(lqgap.NotConvergedError, match="give limits"):
        make_spaces(hopeless, None)
    _, actions = make_spaces(hopeless, (-1, 1))
    assert actions.high == 1
