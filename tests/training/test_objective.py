import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.policies import LinearDynamic, ModelBank
from lqgap.policies.limits import read_limits
from lqgap.training.objective import SampledObjective, is_exact, make_objective, shorten_tail

PLANTS = [random_plant(0), random_plant(1)]


@functools.cache
def systems():
    return lg.stack(PLANTS)


@functools.cache
def free():
    return read_limits(None, num_inputs=2)


def objective_for(policy, limits=None, *, ends=True):
    return make_objective(
        policy, systems(), limits or free(), horizon=8, dtype=jnp.float64, backprop_decay=1.0, ends=ends
    )


@pytest.mark.parametrize("ends", [True, False])
def test_linear_policies_have_exact_gaps_unless_inputs_are_limited(ends):
    policy = LinearDynamic([[0.3]], [[0.1, -0.2]], [[0.1], [0.2]], [[-0.1, 0.0], [0.0, 0.1]])
    objective = objective_for(policy, ends=ends)
    expected = [lg.exact_gap(policy, plant, horizon=8, ends=ends) for plant in PLANTS]
    np.testing.assert_allclose(objective.gaps(policy, jax.random.key(0), 1), expected, rtol=1e-10)
    assert not is_exact(objective_for(policy, read_limits((-1, 1), num_inputs=2)))


@pytest.mark.parametrize("ends", [True, False])
def test_sampled_gaps_are_those_of_the_gap_meter(ends):
    bank = ModelBank(systems(), horizon=8)
    key = jax.random.key(1)
    estimate = lg.gap(bank, systems(), horizon=8, key=key, num_rollouts=32, ends=ends)
    np.testing.assert_allclose(objective_for(bank, ends=ends).gaps(bank, key, 32), estimate.mean, rtol=1e-10)


@pytest.mark.slow
def test_the_derivative_is_that_of_differences_when_nothing_is_truncated_or_shortened(monkeypatch):
    monkeypatch.setattr("lqgap.training.objective.TAIL", 1e9)
    bank = ModelBank(systems(), horizon=8)
    objective = objective_for(bank)

    def mean_gap(log_temperature, own=objective):
        policy = eqx.tree_at(lambda b: b.log_temperature, bank, log_temperature)
        return jnp.mean(own.gaps(policy, jax.random.key(0), 16))

    slope = jax.grad(mean_gap)(0.3)
    np.testing.assert_allclose(slope, (mean_gap(0.3 + 1e-5) - mean_gap(0.3 - 1e-5)) / 2e-5, rtol=1e-6)
    faded = SampledObjective(objective.references, free(), jnp.asarray(0.5))
    np.testing.assert_allclose(mean_gap(0.3, faded), mean_gap(0.3), rtol=1e-12)
    assert abs(jax.grad(lambda t: mean_gap(t, faded))(0.3) - slope) > 1e-6 * abs(slope)
    np.testing.assert_allclose(faded.with_step_scale(jnp.asarray(0.04)).backprop_decay, 0.9)


def test_the_tail_keeps_its_values_and_loses_its_pull():
    totals = jnp.asarray([1.0] * 9 + [91.0])
    np.testing.assert_allclose(shorten_tail(totals), totals)
    slopes = jax.jacobian(shorten_tail)(totals).sum(axis=0)
    np.testing.assert_allclose(slopes[:9], 1)
    np.testing.assert_allclose(slopes[9], 30 / 91)  # three times the mean of ten
