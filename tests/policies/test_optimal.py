import jax.numpy as jnp
import numpy as np
import pytest
from programs import replay
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.policies import FiniteHorizonLQG, StationaryLQG
from lqgap.systems import filter_record, steady_beliefs


def test_stationary_is_the_gain_times_the_exact_belief_or_the_steady_one(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant)
    optimum = lg.solve(plant)
    beliefs = {
        "varying": filter_record(plant, y, u).belief.mean,
        "steady": steady_beliefs(optimum, plant, y, u),
    }
    for filters, belief in beliefs.items():
        chosen = replay(StationaryLQG(plant, filters=filters), y, u)[1]
        np.testing.assert_allclose(chosen, -belief @ optimum.K.T, rtol=1e-10, atol=1e-12)
        known = StationaryLQG(plant, filters=filters, optimum=optimum)
        np.testing.assert_array_equal(replay(known, y, u)[1], chosen)


def test_the_controller_of_a_task_that_goes_on_has_no_gap_in_it(seed):
    plant = random_plant(seed)
    policy = StationaryLQG(plant)
    assert 1 < policy.num_transient < 100  # the horizon is beyond it
    assert lg.exact_gap(policy, plant, horizon=200, ends=False) < 1e-18 * lg.solve(plant).J
    steady = lg.exact_gap(StationaryLQG(plant, filters="steady"), plant, horizon=200, ends=False)
    assert steady > 1e-6  # what the constant filter loses at the start


@pytest.mark.usefixtures("as_users_run_it")
def test_filters_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="filters is 'exact', expected one of 'varying'"):
        StationaryLQG(random_plant(0), filters="exact")


def test_finite_horizon_is_the_gain_of_each_step_times_the_exact_belief(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant, steps=10)
    beliefs = filter_record(plant, y, u).belief.mean
    finite = lg.solve_finite(plant, horizon=9)
    expected = -jnp.einsum("tij,tj->ti", finite.K, beliefs)
    chosen = replay(FiniteHorizonLQG(plant, 9), y, u)[1]
    np.testing.assert_allclose(chosen, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(chosen[-1], 0)  # the last input has no effect but its cost


def test_controllers_are_exact_through_losses(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant, steps=50)
    rng = np.random.default_rng(seed)
    y[rng.random(y.shape) < 0.3] = np.nan
    y[rng.random(len(y)) < 0.2] = np.nan
    beliefs = filter_record(plant, y, u).belief.mean
    for policy in (StationaryLQG(plant), FiniteHorizonLQG(plant, 49)):
        gains = np.broadcast_to(policy.K, (50, *policy.K.shape[1:]))
        expected = -np.einsum("tij,tj->ti", gains, beliefs)
        np.testing.assert_allclose(replay(policy, y, u)[1], expected, rtol=1e-8, atol=1e-9)
