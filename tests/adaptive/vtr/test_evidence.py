import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant, random_record, relative_sums
from scipy.stats import multivariate_normal

import lqgap as lg
from lqgap.adaptive.vtr.evidence import CORRELATIONS, SCALES, Evidence, MemberFilters
from lqgap.systems.kalman import filter_record
from lqgap.systems.optimum import solve_members

COUNT = 3
PLANTS = [random_plant(seed) for seed in range(COUNT)]


def filters_of(plants):
    systems = lg.stack(plants)
    return MemberFilters(systems, solve_members(systems))


@eqx.filter_jit
def gather(filters, ys, us):
    def step(carry, now):
        evidence, u_last = carry
        evidence, _ = evidence.observe(filters, now[0], u_last)
        return (evidence, now[1]), (evidence.log_likelihood, evidence.misfit())

    start = Evidence.empty(filters), jnp.zeros_like(us[0])
    (evidence, _), steps = jax.lax.scan(step, start, (ys, us))
    return evidence, steps


def test_likelihoods_are_those_of_the_exact_filters():
    ys, us = (jnp.asarray(part) for part in random_record(0, PLANTS[0], steps=50))
    evidence, _ = gather(filters_of(PLANTS), ys, us)
    expected = relative_sums([filter_record(plant, ys, us).log_likelihood for plant in PLANTS])
    np.testing.assert_allclose(evidence.log_likelihood, expected, rtol=1e-8, atol=1e-8)
    left = evidence.likely_members(jnp.ones(COUNT, dtype=bool), delta=jnp.asarray(0.1))
    mixture = np.logaddexp.reduce(expected) - np.log(COUNT)
    np.testing.assert_array_equal(left, expected >= mixture + np.log(0.1))


def test_the_misfit_is_the_mixture_over_alternatives_and_beginnings():
    ys, us = (jnp.asarray(part) for part in random_record(1, PLANTS[0], steps=30))
    _, (_, found) = gather(filters_of(PLANTS), 3 * ys, us)
    mixtures = []
    for plant in PLANTS:
        record = filter_record(plant, 3 * ys, us)
        q = np.einsum("ti,tij,tj->t", record.innovation, np.linalg.inv(record.S), record.innovation)
        ratios = [c ** (-plant.num_outputs / 2) * np.exp(q * (1 - 1 / c) / 2) for c in SCALES]
        for r in CORRELATIONS:
            means = r * np.concatenate([np.zeros((1, plant.num_outputs)), record.innovation[:-1]])
            densities = [
                [
                    multivariate_normal.pdf(e, m, S)
                    for e, m, S in zip(record.innovation, shift, record.S, strict=True)
                ]
                for shift in (means, 0 * means)
            ]
            ratios.append(np.divide(*densities))
        total = sum(
            np.prod(ratio[s:]) / ((s + 1) * (s + 2)) / len(ratios) for ratio in ratios for s in range(len(q))
        )
        mixtures.append(np.log(total + 1 / (len(q) + 1)))
    np.testing.assert_allclose(found[-1], min(mixtures), rtol=1e-8)


def test_beliefs_and_likelihoods_are_exact_through_losses():
    ys, us = (np.array(part) for part in random_record(3, PLANTS[0], steps=40))
    ys[np.random.default_rng(0).random(ys.shape) < 0.3] = np.nan
    evidence, _ = gather(filters_of(PLANTS), jnp.asarray(ys), jnp.asarray(us))
    records = [filter_record(plant, ys, us) for plant in PLANTS]
    for xhat, record in zip(evidence.xhat, records, strict=True):
        np.testing.assert_allclose(xhat, record.belief.mean[-1], rtol=1e-6, atol=1e-8)
    expected = relative_sums([record.log_likelihood for record in records])
    np.testing.assert_allclose(evidence.log_likelihood, expected, rtol=1e-6, atol=1e-6)


def test_a_lost_observation_says_nothing():
    ys, us = (jnp.asarray(part) for part in random_record(2, PLANTS[0], steps=20))
    lost = ys.at[7].set(jnp.nan)
    _, (likelihood, strength) = gather(filters_of(PLANTS), lost, us)
    np.testing.assert_array_equal(likelihood[7], likelihood[6])
    assert np.all(np.isfinite(strength))


@pytest.mark.slow
def test_a_true_class_is_refuted_no_more_often_than_stated_and_a_false_one_soon():
    """1000 runs under random inputs; the truth is one of three members, then twice as noisy as one."""
    filters, delta, runs, steps = filters_of(PLANTS), 0.1, 1000, 400
    truth = PLANTS[1]

    def simulate(key, noise):
        keys = jax.random.split(key, 3)
        us = jax.random.normal(keys[0], (steps, truth.num_inputs))
        w = noise * jax.random.normal(keys[1], (steps + 1, truth.num_states))
        v = noise * jax.random.normal(keys[2], (steps, truth.num_outputs))
        roots = [jnp.linalg.cholesky(part) for part in (truth.S0, truth.W, truth.V)]

        def step(x, now):
            u, w, v = now
            return truth.A @ x + truth.B @ u + roots[1] @ w, truth.C @ x + roots[2] @ v

        _, ys = jax.lax.scan(step, roots[0] @ w[0], (us, w[1:], v))
        return gather(filters, ys, us)[1][1]

    keys = jax.random.split(jax.random.key(0), runs)
    for noise in (1.0, 1.5):
        strength = np.asarray(jax.jit(jax.vmap(lambda key, noise=noise: simulate(key, noise)))(keys))
        ever = np.mean(np.max(strength, axis=1) >= np.log(1 / delta))
        if noise == 1.0:
            assert ever <= delta + 3 * np.sqrt(delta * (1 - delta) / runs)
        else:
            assert ever == 1.0


def test_evidence_begun_anew_forgets_the_members_and_keeps_the_beliefs():
    ys, us = (jnp.asarray(part) for part in random_record(2, PLANTS[0], steps=20))
    before, _ = gather(filters_of(PLANTS), ys, us)
    same, anew = (before.begin_anew(jnp.asarray(when)) for when in (False, True))
    np.testing.assert_array_equal(same.log_likelihood, before.log_likelihood)
    np.testing.assert_array_equal(anew.xhat, before.xhat)
    assert not np.any(anew.log_likelihood)
    assert float(anew.misfit()) == 0.0


def test_steady_filters_are_those_of_the_long_run():
    systems = lg.stack(PLANTS)
    optima = solve_members(systems)
    steady = MemberFilters(systems, optima, is_exact=False)
    L, law = steady.at(jnp.asarray(0))
    np.testing.assert_array_equal(L, optima.L)
    np.testing.assert_array_equal(law.S, optima.S)


def test_a_filter_that_never_settles_is_refused():
    slow = lg.LQG([[1.0]], [[1.0]], [[1.0]], W=[[1e-9]])
    with pytest.raises(lg.InvalidArgumentError, match="settled"):
        filters_of([slow])
