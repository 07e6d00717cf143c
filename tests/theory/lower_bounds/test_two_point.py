import functools
import itertools

import jax
import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.optimize
from opposite import opposite
from random_systems import random_plant
from two_filters import operators

import lqgap as lg
from lqgap.evaluation.gap import references_of
from lqgap.theory.lower_bounds.belief import belief_bound
from lqgap.theory.lower_bounds.two_point import prefix_lengths, truncated_variance, two_point_bound

PAIR = np.array([[0, 1], [1, 0]])


@functools.cache
def springs():
    return lg.plants.mass_spring_damper().grid(2)


@pytest.mark.parametrize("level", [0.1, 1.0, 7.0])
def test_the_truncated_variance_is_its_integral(level):
    expected = scipy.integrate.quad(
        lambda z: min(z * z, level) * scipy.stats.norm.pdf(z), -12, 12, limit=200
    )[0]
    np.testing.assert_allclose(truncated_variance(level), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("num_steps", "expected"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 4, 5]), (8, [1, 2, 4, 8])]
)
def test_sums_may_stop_at_powers_of_two_and_at_the_end(num_steps, expected):
    assert prefix_lengths(num_steps).tolist() == expected


@pytest.mark.parametrize("horizon", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_bound_is_below_the_exact_minimax(horizon):
    references = references_of(opposite(), horizon=horizon)
    exact = belief_bound(references, num_steps=horizon).upper
    values = two_point_bound(references, PAIR).value
    assert np.all(values <= exact)
    assert np.max(values) > 0.2 * exact


@pytest.mark.slow
def test_two_plants_that_want_the_same_bound_nothing():
    same = lg.stack([random_plant(0), random_plant(0)])
    np.testing.assert_allclose(two_point_bound(references_of(same, horizon=5), PAIR).value, 0, atol=1e-12)


@pytest.mark.slow
def test_pairs_that_are_skipped_would_not_have_been_the_best(monkeypatch):
    references = references_of(lg.plants.mass_spring_damper().grid(3).systems, horizon=10)
    pairs = np.array(list(itertools.permutations(range(9), 2)))
    monkeypatch.setattr("lqgap.theory.lower_bounds.two_point.PAIRS_AT_A_TIME", 8)
    together = two_point_bound(references, pairs)
    alone = np.concatenate([two_point_bound(references, pairs[[index]]).value for index in range(len(pairs))])
    assert np.sum(together.value > 0) < np.sum(alone > 0)
    np.testing.assert_allclose(np.max(together.value), np.max(alone), rtol=1e-9)
    evaluated = together.value > 0
    np.testing.assert_allclose(together.value[evaluated], alone[evaluated], rtol=1e-6)


@pytest.mark.slow
def test_the_bound_is_the_fixed_point_of_its_formula():
    """Sums, gains and fixed point anew, from simulated impulses and noise-free algebra in NumPy."""
    horizon = 6
    references = references_of(springs().systems, horizon=horizon)
    first, second = (jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), references) for i in (0, 3))
    (want, expect), (want_d, expect_d) = operators(first, second, 1.0)
    steps = horizon + 1
    wanted = np.sum(want.reshape(steps, -1) ** 2, axis=1) * second.M[:, 0, 0]
    variance = second.S_root[:, 0, 0] ** 2
    information = np.cumsum(np.sum(expect.reshape(steps, -1) ** 2, axis=1) / variance)
    ratio = (first.S_root[:, 0, 0] / second.S_root[:, 0, 0]) ** 2
    covariance = np.cumsum(0.5 * (ratio - 1 - np.log(ratio)))
    best = 0.0
    for length in prefix_lengths(steps):
        counted = slice(0, length)
        M0, M1 = (np.sqrt(reference.M[counted, 0, 0]) for reference in (first, second))
        c1 = np.linalg.norm(M1[:, None] * (np.eye(steps) + want_d)[counted, counted] / M0, ord=2)
        c2 = np.linalg.norm(expect_d[counted, counted] / np.sqrt(variance[counted])[:, None] / M0, ord=2)
        for level in np.geomspace(0.05, 30, 25):

            def bound(g, length=length, c1=c1, c2=c2, level=level):
                divergence = 0.5 * (np.sqrt(information) + c2 * np.sqrt(g)) ** 2 + covariance
                variation = np.minimum(np.sqrt(divergence / 2), np.sqrt(1 - np.exp(-divergence)))
                left = np.sqrt(truncated_variance(level) * np.sum(wanted[:length])) - c1 * np.sqrt(g)
                return max(left, 0) ** 2 - level * np.sum((wanted * variation)[:length]) - g

            if bound(0.0) > 0:
                best = max(
                    best, scipy.optimize.root_scalar(bound, bracket=(0, bound(0.0) + 1), xtol=1e-14).root
                )
    found = two_point_bound(references, np.array([[0, 3]]))
    np.testing.assert_allclose(found.value, best, rtol=1e-5)
