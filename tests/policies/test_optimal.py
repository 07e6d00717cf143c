import jax
import jax.numpy as jnp
import numpy as np
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.policies import FiniteHorizonLQG, StationaryLQG
from lqgap.systems import filter_record, steady_beliefs


def inputs(policy, y, u):
    """Inputs the policy would choose along a record of what was applied."""
    u_last = jnp.concatenate([jnp.zeros((1, u.shape[1])), jnp.asarray(u[:-1])])

    def step(memory, now):
        return policy.step(memory, *now)

    return jax.lax.scan(step, policy.init(jax.random.key(0)), (jnp.asarray(y), u_last))[1]


def test_stationary_is_the_gain_times_the_steady_belief(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant)
    optimum = lg.solve(plant)
    expected = -steady_beliefs(optimum, plant, y, u) @ optimum.K.T
    np.testing.assert_allclose(inputs(StationaryLQG(plant), y, u), expected, rtol=1e-10, atol=1e-12)


def test_finite_horizon_is_the_gain_of_each_step_times_the_exact_belief(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant, steps=10)
    beliefs = filter_record(plant, y, u).belief.mean
    finite = lg.solve_finite(plant, horizon=9)
    expected = -jnp.einsum("tij,tj->ti", finite.K, beliefs)
    chosen = inputs(FiniteHorizonLQG(plant, 9), y, u)
    np.testing.assert_allclose(chosen, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(chosen[-1], 0)  # the last input has no effect but its cost


def test_a_partly_lost_observation_corrects_as_the_exact_filter_does(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant, steps=1)
    y[0, 0] = np.nan
    expected = -lg.solve_finite(plant, horizon=5).K[0] @ filter_record(plant, y, u).belief.mean[0]
    np.testing.assert_allclose(inputs(FiniteHorizonLQG(plant, 5), y, u)[0], expected, rtol=1e-10, atol=1e-12)
