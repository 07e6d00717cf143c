import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden import GOLDEN

from lqgap.adaptive.vtr.statistics import Statistics

VTR = GOLDEN["vtr_statistics"]


def add_sample(statistics, f, target, *, psi):
    """One sample more, of weight one, and whether the score has reached one."""
    weight = jnp.ones_like(target)
    raises = statistics.score_increment(f, psi=psi, weight=weight)
    is_due = statistics.must_flush(raises)
    statistics = statistics.buffer(f, target, increment=raises, weight=weight, is_there=jnp.asarray(True))
    flushed, is_reached = statistics.flush(psi=psi)
    return jax.tree.map(lambda a, b: jnp.where(is_due, a, b), flushed, statistics), is_due & is_reached


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


def streaming(F, Y, psi, beta, buffer_size):
    samples = (jnp.asarray(F), jnp.asarray(Y))
    statistics, (is_due, sets) = scan_samples(samples, jnp.asarray(psi), jnp.asarray(beta), buffer_size)
    switches = np.flatnonzero(is_due)
    return statistics, list(switches), np.asarray(sets)[switches]


@functools.partial(jax.jit, static_argnums=3)
def scan_samples(samples, psi, beta, buffer_size):
    num_members = samples[0].shape[1]
    everyone = jnp.ones(num_members, dtype=bool)

    def step(statistics, sample):
        statistics, is_due = add_sample(statistics, *sample, psi=psi)
        statistics = jax.tree.map(lambda a, b: jnp.where(is_due, a, b), statistics.merge(), statistics)
        return statistics, (is_due, statistics.confidence_set(everyone, beta=beta))

    return jax.lax.scan(step, Statistics.empty(num_members, buffer_size=buffer_size), samples)


def random_samples(seed):
    draws = np.random.default_rng(seed)
    members, steps = (2, 5, 11)[seed % 3], 150
    slopes, common = draws.normal(size=(members, 3)), 1e3 * draws.normal(size=(steps, 1))
    F = common + draws.normal(size=(steps, 3)) @ slopes.T
    return F, F[:, 0] + draws.normal(size=steps)


@pytest.mark.parametrize("buffer_size", [0, 7, 40])
@pytest.mark.parametrize("seed", range(20))
def test_streaming_and_waiting_switch_when_the_naive_recomputation_does(seed, buffer_size):
    F, Y = random_samples(seed)
    switches, sets = naive(F, Y, psi=5.0, beta=60.0)
    _, found, found_sets = streaming(F, Y, 5.0, 60.0, buffer_size)
    assert found == switches
    assert len(switches) > 2
    np.testing.assert_array_equal(found_sets, sets)


def test_golden_statistics():
    F, Y, split = jnp.asarray(VTR["F"]), jnp.asarray(VTR["Y"]), VTR["split"]
    psi = jnp.asarray(VTR["psi"])
    statistics = Statistics.empty(F.shape[1], buffer_size=0)
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
    statistics, _, _ = streaming(F, Y, 5.0, 60.0, 0)
    best = int(np.argmin(statistics.kept.loss))
    others = jnp.arange(F.shape[1]) != best
    assert int(statistics.estimate(others)) != best
    assert not statistics.confidence_set(others, beta=jnp.asarray(jnp.inf))[best]


def test_the_growth_of_the_score_is_bounded_sharply_on_a_fine_class():
    """300 members whose predictions differ in three directions: neighbours are close, the range is wide."""
    draws = np.random.default_rng(0)
    F = draws.normal(size=(400, 3)) @ draws.normal(size=(3, 300))
    statistics, _, _ = streaming(F[:300], F[:300, 0], 5.0, 60.0, 16)
    statistics = statistics.merge()
    dist, total, total_by_range = np.asarray(statistics.kept.dist), 0.0, 0.0
    for f in F[300:]:
        bound = float(
            statistics.score_increment(jnp.asarray(f), psi=jnp.asarray(5.0), weight=jnp.asarray(1.0))
        )
        exact = np.max((f[:, None] - f[None, :]) ** 2 / (dist + 5.0))
        assert exact <= bound
        total += bound
        total_by_range += (f.max() - f.min()) ** 2 / 5.0
    assert total < 0.1 * total_by_range
