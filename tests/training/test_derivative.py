import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.policies import ModelBank
from lqgap.policies.limits import read_limits
from lqgap.training.derivative import pathwise, smoothed
from lqgap.training.objective import make_objective


@functools.cache
def systems():
    return lg.stack([random_plant(0), random_plant(1)])


@functools.cache
def example():
    """A bank on two plants, its objective, and weights of the plants."""
    bank = ModelBank(systems(), horizon=8)
    free = read_limits(None, num_inputs=2)
    objective = make_objective(bank, systems(), free, horizon=8, dtype=jnp.float64, backprop_decay=1.0)
    return bank, objective, jnp.asarray([0.3, 0.7])


def test_the_pathwise_derivative_is_that_of_the_weighted_gap():
    key = jax.random.key(0)
    bank, objective, weights = example()
    parameters, frozen = eqx.partition(bank, bank.trainable())
    gaps, gradient = pathwise(objective, parameters, frozen, weights, key, num_rollouts=8)
    np.testing.assert_allclose(gaps, objective.gaps(bank, key, 8), rtol=1e-12)
    assert np.all(np.isfinite(gradient.shaping))


def estimates(parameters, frozen, spread, *, count=24):
    """Smoothed derivatives on independent draws, one row each."""
    _, objective, weights = example()
    around = jax.tree.map(lambda _: jnp.asarray(spread), parameters)

    def estimate(key):
        _, slope = smoothed(objective, parameters, frozen, weights, key, num_rollouts=4096, spread=around)
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(slope)])

    return np.asarray(jax.lax.map(estimate, jax.random.split(jax.random.key(2), count)))


@pytest.mark.slow
def test_the_smoothed_derivative_is_the_pathwise_one_where_all_is_smooth(monkeypatch):
    monkeypatch.setattr("lqgap.training.objective.TAIL", 1e9)
    monkeypatch.setattr("lqgap.training.derivative.LARGEST", 1e9)
    bank, objective, weights = example()
    parameters, frozen = eqx.partition(bank, bank.trainable())
    _, exact = pathwise(objective, parameters, frozen, weights, jax.random.key(1), num_rollouts=20_000)
    exact = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(exact)])
    rows = estimates(parameters, frozen, 1e-3)
    stderr = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    # 21 coordinates, and 23 degrees of freedom: beyond 5 standard errors once in 1000.
    assert np.all(np.abs(rows.mean(axis=0) - exact) < 5 * stderr)
    assert np.max(np.abs(exact) / stderr) > 4  # there is something to see


@pytest.mark.slow
def test_a_choice_without_a_pathwise_derivative_has_a_smoothed_one():
    """A bank that takes the likeliest member: along a rollout the prior moves nothing, but it matters."""
    _, objective, weights = example()
    bank = ModelBank(systems(), horizon=8, mode="map")
    only_prior = eqx.tree_at(
        lambda b: b.log_prior, jax.tree.map(lambda _: False, bank), replace_fn=lambda _: True
    )
    parameters, frozen = eqx.partition(bank, only_prior)
    _, blind = pathwise(objective, parameters, frozen, weights, jax.random.key(3), num_rollouts=64)
    np.testing.assert_array_equal(blind.log_prior, 0.0)
    rows = estimates(parameters, frozen, 1.0) @ np.asarray([1.0, -1.0])
    assert abs(rows.mean()) > 4 * rows.std(ddof=1) / np.sqrt(len(rows))
