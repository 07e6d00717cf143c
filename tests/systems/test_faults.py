import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from lqgap.systems.faults import ABSURD, CALM, FIRST, LEAD, MAX_LOST, MISFIT, Gate
from lqgap.systems.innovation import Filled, fill_lost

WILD = 1e6  # e' S^-1 e


@eqx.filter_jit
def judged(distances):
    """The gate after every sample of a record of one output, one distance for each model."""

    def step(gate, now):
        gate = gate.judge(now, 1)
        return gate, gate

    return jax.lax.scan(step, Gate.unused(), distances)[1]


def lost_of(is_wild):
    """Which samples count as lost: those that are wild, others being as a model says."""
    distances = np.where(is_wild, WILD, 0.5)[:, None]
    return np.flatnonzero(judged(jnp.asarray(distances)).is_lost).tolist()


@functools.cache
def normals(steps):
    return np.random.default_rng(0).standard_normal((steps, 1))


@pytest.mark.parametrize("num_outputs", [1, 3])
def test_a_sample_is_absurd_if_it_is_so_improbable_to_every_model(num_outputs):
    limit = chi2.isf(ABSURD, num_outputs)
    assert Gate.unused().judge(jnp.asarray([2 * limit, 1.001 * limit]), num_outputs).is_absurd
    assert not Gate.unused().judge(jnp.asarray([2 * limit, 0.999 * limit]), num_outputs).is_absurd


def test_calm_samples_buy_the_right_to_lose_one():
    for calm in (FIRST - 1, FIRST):
        assert lost_of([False] * calm + [True]) == [FIRST] * (calm == FIRST)
    spent = [False] * 1_000 + [True] * MAX_LOST
    assert lost_of([*spent, False, True])[MAX_LOST:] == []
    assert lost_of([*spent, *[False] * CALM, True])[MAX_LOST:] == [1_003 + CALM]


def test_what_goes_on_is_taken_in():
    assert lost_of([False] * 1_000 + [True] * 200) == [1_000 + k for k in range(MAX_LOST)]


@pytest.mark.parametrize("every", [3, 10, 25, 49, 51, 100])
def test_however_often_spikes_come_one_sample_in_three_can_be_lost(every):
    is_spike = (np.arange(5_000) >= 1_000) & (np.arange(5_000) % every == 0)
    assert lost_of(is_spike) == np.flatnonzero(is_spike).tolist()


def test_the_scale_is_one_where_a_model_is_right_and_that_of_the_noise_where_none_is():
    assert jax.vmap(lambda gate: gate.scale)(judged(jnp.ones((2, 1)))).tolist() == [1, 1]
    assert np.max(judged(jnp.asarray(normals(5_000) ** 2)).log_scale) < MISFIT
    for times in (1e2, 1e6):
        gates = judged(jnp.asarray(times * normals(5_000) ** 2))
        # Over sixty samples the mean of log chi^2_1, whose deviation is 2.2, has one of .2.
        np.testing.assert_allclose(np.median(gates.log_scale[200:]), np.log(times), atol=0.2)
        assert not np.any(gates.is_lost[200:])


def test_a_burst_moves_the_scale_little():
    distances = normals(1_100) ** 2
    distances[1_000:1_020] = 1e12
    assert np.max(judged(jnp.asarray(distances)).log_scale) < np.log(100)


def after_one(e, S):
    """Log-likelihoods after a sample with these innovations, of models with these variances."""
    filled = jax.vmap(fill_lost)(jnp.asarray(e)[:, None], jnp.asarray(S)[:, None, None])
    gate = Gate.unused().judge(filled.distance, 1)
    assert gate.is_absurd
    assert not gate.is_lost
    return gate.weigh(jnp.zeros(len(e)), filled, jnp.asarray(1))


@pytest.mark.parametrize("e", [30.0, 1e6, 1e12])
def test_an_absurd_sample_that_is_the_same_to_all_models_says_nothing(e):
    np.testing.assert_allclose(after_one([e, e, e], [0.5, 1.0, 4.0]), 0, atol=1e-12)


def test_an_absurd_sample_says_which_model_is_nearer():
    # The quotient of the sizes.
    np.testing.assert_allclose(after_one([1e3, 1e5], [1.0, 1.0]), [0, -np.log(1e2)], rtol=1e-12)


@eqx.filter_jit
def weighed(log_densities, dtype):
    def step(log_likelihood, now):
        filled = jax.vmap(Filled)(now[:, None], now, jnp.zeros_like(now))
        log_likelihood = Gate.unused().weigh(log_likelihood, filled, jnp.asarray(1))
        return log_likelihood, log_likelihood

    return jax.lax.scan(step, jnp.zeros(log_densities.shape[1], dtype), log_densities.astype(dtype))[1]


def test_leads_are_bounded_and_lost_within_a_time_that_does_not_grow_with_the_time_before():
    for before in (100, 10_000):
        densities = np.concatenate([np.tile([0.0, -1.0], (before, 1)), np.tile([-1.0, 0.0], (100, 1))])
        found = weighed(jnp.asarray(densities), jnp.float64)
        np.testing.assert_array_equal(found[before - 1], [0, -LEAD])
        assert np.argmax(np.asarray(found)[before:, 1] > np.asarray(found)[before:, 0]) == LEAD


def test_differences_do_not_drift_in_single_precision():
    """The sum itself grows to 2e5, where a number of single precision has a spacing of .016."""
    densities = -2 - normals(100_000) ** 2 * np.asarray([[0.5, 0.5]])
    densities[:, 1] += 0.02 * np.sign(np.sin(0.01 * np.arange(100_000)))
    found, exact = (np.asarray(weighed(jnp.asarray(densities), kind)) for kind in (jnp.float32, jnp.float64))
    np.testing.assert_allclose(found[:, 0] - found[:, 1], exact[:, 0] - exact[:, 1], atol=0.05)
