import functools

import jax
import jax.numpy as jnp
import numpy as np
from random_systems import random_plant

import lqgap as lg
from lqgap.evaluation.reference import begin, excess, reference_of
from lqgap.policies import FiniteHorizonLQG, StationaryLQG
from lqgap.policies.limits import read_limits
from lqgap.systems import filter_record


@functools.cache
def free():
    return read_limits(None, num_inputs=2)


def test_the_optimal_policy_has_no_excess(seed):
    plant = random_plant(seed)
    normals = jnp.asarray(np.random.default_rng(seed).normal(size=(11, 2)))
    policy, reference = FiniteHorizonLQG(plant, 10), reference_of(plant, horizon=10)
    run = excess(policy, reference, normals, begin(policy, reference, jax.random.key(0)), free())
    np.testing.assert_allclose(run.per_step, 0, atol=1e-20)


def test_the_excess_is_what_the_definition_says_along_the_same_observations(seed):
    plant = random_plant(seed)
    reference = reference_of(plant, horizon=10)
    normals = jnp.asarray(np.random.default_rng(seed).normal(size=(11, 2)))
    policy = StationaryLQG(plant)
    run = excess(policy, reference, normals, begin(policy, reference, jax.random.key(0)), free())

    finite = lg.solve_finite(plant, horizon=10)
    predicted, memory, u = jnp.zeros(3), policy.init(jax.random.key(0)), jnp.zeros(2)
    y_all, u_all = np.full((11, 2), np.nan), np.zeros((11, 2))  # what is still to come is lost
    for h in range(11):
        y = plant.C @ predicted + jnp.linalg.cholesky(finite.S[h]) @ normals[h]
        memory, u = policy.step(memory, y, u)
        y_all[h], u_all[h] = y, u
        belief = filter_record(plant, y_all, u_all).belief.mean[h]
        predicted = plant.A @ belief + plant.B @ u
        deviation = u + finite.K[h] @ belief
        np.testing.assert_allclose(run.per_step[h], deviation @ finite.M[h] @ deviation, rtol=1e-8)
    np.testing.assert_allclose(run.end.predicted, predicted, rtol=1e-9)
