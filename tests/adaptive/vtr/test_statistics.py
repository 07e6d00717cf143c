import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden import GOLDEN

from lqgap.adaptive.vtr.statistics import Statistics

VTR = GOLDEN["vtr_statistics"]


def add_sample(statistics, f, target, *, psi):
    """One sample more, of weight one, and whether the score has reached one."""
    statistics = statistics.add(f, target, weight=jnp.ones_like(target))
    return statistics, statistics.score(psi=psi) >= 1


def naive(F, Y, psi, beta):
    """Everything from all samples anew at every step."""
    switches, sets, start = [], [], 0
    for t in range(len(F)):
        kept, new = F[:start], F[start : t + 1]
        dist = lambda rows: ((rows[:, :, None] - rows[:, None, :]) ** 2).sum(axis=0)  # noqa: E731
        if np.max(dist(new) / (dist(kept) + psi)) >= 1:
            start = t + 1
            losses = ((F[:start] - Y[:start, None]) ** 2).sum(axis=0)
            switches.append(t)
            sets.append(dist(F[:start])[np.argmin(losses)] <= beta)
    return switches, np.asarray(sets)


def streaming(F, Y, psi, beta):
    samples = (jnp.asarray(F), jnp.asarray(Y))
    statistics, (is_due, sets) = scan_samples(samples, jnp.asarray(psi), jnp.asarray(beta))
    switches = np.flatnonzero(is_due)
    return statistics, list(switches), np.asarray(sets)[switches]


@jax.jit
def scan_samples(samples, psi, beta):
    num_members = samples[0].shape[1]
    everyone = jnp.ones(num_members, dtype=bool)

    def step(statistics, sample):
        statistics, is_due = add_sample(statistics, *sample, psi=psi)
        statistics = jax.tree.map(lambda a, b: jnp.where(is_due, a, b), statistics.merge(), statistics)
        return statistics, (is_due, statistics.confidence_set(everyone, beta=beta))

    return jax.lax.scan(step, Statistics.empty(num_members), samples)


def random_samples(seed):
    draws = np.random.default_rng(seed)
    members, steps = (2, 5, 11)[seed % 3], 150
    slopes, common = draws.normal(size=(members, 3)), 1e3 * draws.normal(size=(steps, 1))
    F = common + draws.normal(size=(steps, 3)) @ slopes.T
    return F, F[:, 0] + draws.normal(size=steps)


@pytest.mark.parametrize("seed", range(20))
def test_streaming_switches_when_the_naive_recomputation_does(seed):
    F, Y = random_samples(seed)
    switches, sets = naive(F, Y, psi=5.0, beta=60.0)
    _, found, found_sets = streaming(F, Y, 5.0, 60.0)
    assert found == switches
    assert len(switches) > 2
    np.testing.assert_array_equal(found_sets, sets)


def test_golden_statistics():
    F, Y, split = jnp.asarray(VTR["F"]), jnp.asarray(VTR["Y"]), VTR["split"]
    psi = jnp.asarray(VTR["psi"])
    statistics = Statistics.empty(F.shape[1])
    for t, (f, target) in enumerate(zip(F, Y, strict=True)):
        if t == split:
            statistics = statistics.merge()
        statistics, _ = add_sample(statistics, f, target, psi=psi)
    np.testing.assert_allclose(statistics.score(psi=psi), VTR["score"], rtol=1e-12)
    statistics = statistics.merge()
    everyone = jnp.ones(F.shape[1], dtype=bool)
    np.testing.assert_allclose(statistics.kept.loss, VTR["losses_all"], rtol=1e-12)
    assert int(statistics.estimate(everyone)) == VTR["argmin_all"]
    np.testing.assert_allclose(
        statistics.kept.dist[VTR["argmin_all"]], VTR["dist_to_argmin_all"], rtol=1e-12, atol=1e-12
    )
    inside = statistics.confidence_set(everyone, beta=jnp.asarray(VTR["beta"]))
    assert list(np.flatnonzero(inside)) == VTR["confidence_set_all"]


def test_only_the_given_members_are_estimates_and_in_the_set():
    F, Y = random_samples(1)
    statistics, _, _ = streaming(F, Y, 5.0, 60.0)
    best = int(np.argmin(statistics.kept.loss))
    others = jnp.arange(F.shape[1]) != best
    assert int(statistics.estimate(others)) != best
    assert not statistics.confidence_set(others, beta=jnp.asarray(jnp.inf))[best]
