import functools

import numpy as np
import pytest
from exact_paths import clipped_rule, response
from van_trees_cases import (
    LEVEL,
    effects_of_all,
    moments_of,
    mutant,
    no_deviation,
    small_case,
    solve_paths,
    undisturbed,
)
from varied_plants import SIZES

from lqgap.theory.lower_bounds.van_trees.clipping import ClippedNormal

MOMENTS = [name for name in ClippedNormal.__dataclass_fields__ if name != "level"]


def exact_second_moments(size):
    """E v^2, E (sum of D_j^2) and E Q2^2 by place, along all paths."""
    case = small_case(size)
    solved = undisturbed(size)
    whole, parts, products = (np.zeros(case.rows.a.shape[:2]) for _ in range(3))
    products = np.zeros(case.rows.a.shape[:3])
    for key, pieces in solved.pieces.items():
        whole[key] = solved.mean(sum(piece.D for piece in pieces) ** 2)
        parts[key] = sum(solved.mean(piece.D**2) for piece in pieces)
        products[key][: len(pieces)] = [solved.mean(piece.Q2_0**2) for piece in pieces]
    return whole, parts, products


@pytest.mark.parametrize("size", SIZES)
def test_the_second_moment_of_the_test_is_that_along_all_paths(size):
    case = small_case(size)
    whole, parts, products = exact_second_moments(size)
    found = moments_of(case)
    np.testing.assert_allclose(parts, whole, rtol=1e-11)
    np.testing.assert_allclose(found.total, whole, rtol=1e-11)
    np.testing.assert_allclose(found.products, products, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_psi_meets_the_window_sum_by_its_response(size):
    case = small_case(size)
    solved = undisturbed(size)
    for h, i in case.tests:
        exact = solved.mean(np.sum(solved.paths.psi0[h][:, :, i] * solved.W[h, i], axis=1))
        found = case.chi.product * np.sum(np.asarray(case.window.psi)[h, :, :, i] * case.rows.a[h, i])
        np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (2, 2)])
def test_longer_records_have_the_moments_of_simulations(size):
    """Twelve instants, windows of six; four standard errors of 100 000 runs."""
    case = small_case(size, instants=12, length=6, scale=0.1)
    x = np.random.default_rng(8).normal(size=(100_000, 12))
    solved = solve_paths(case, no_deviation(case), (x, np.full(len(x), 1 / len(x))))
    found = moments_of(case).total
    for h, i in case.tests:
        square = sum(piece.D for piece in solved.pieces[h, i]) ** 2
        assert abs(square.mean() - found[h, i]) < 4 * square.std() / np.sqrt(len(x))
        meets = np.sum(solved.paths.psi0[h][:, :, i] * solved.W[h, i], axis=1)
        expected = case.chi.product * np.sum(np.asarray(case.window.psi)[h, :, :, i] * case.rows.a[h, i])
        assert abs(meets.mean() - expected) < 4 * meets.std() / np.sqrt(len(x))


def test_every_moment_of_the_clip_and_every_term_of_the_window_is_needed():
    """Mutants: one per cent off, or left out, and the second moment is another one."""
    case = small_case((1, 1))
    whole, _, _ = exact_second_moments((1, 1))
    mutants = {name: case._replace(chi=mutant(case.chi, name, 1.01)) for name in MOMENTS}
    for name in ("gamma", "g", "shared", "spread", "information"):
        mutants[name] = case._replace(window=mutant(case.window, name, 0))
    mutants["sign of gamma"] = case._replace(window=mutant(case.window, "gamma", -1))
    off = {name: np.max(np.abs(moments_of(other).total / whole - 1)) for name, other in mutants.items()}
    assert min(off.values()) > 1e-6, off


@pytest.mark.parametrize("size", [(1, 1), (2, 1)])
def test_sup_and_size_bound_what_deviations_make_of_the_window(size):
    """Both by their definitions, and |l_t| also against its exact norm."""
    case, solved = small_case(size), undisturbed(size)
    effects, kx = effects_of_all(case), case.chi.product
    for h, i in case.tests:
        instants, pieces, a = case.instants(h), solved.pieces[h, i], np.asarray(case.rows.a[h, i])
        sup, size_of, exact = (np.zeros(a.shape[0]) for _ in range(3))
        linear = {}
        for j, t in enumerate(instants):
            before = solved.mean(score_until(case, solved, instants[-1], a[j]) ** 2) ** 0.5
            inside = (
                solved.mean((pieces[j].score0 - score_until(case, solved, instants[-1], a[j])) ** 2) ** 0.5
            )
            products = solved.mean(pieces[j].Q2_0 ** 2) ** 0.5
            c = np.zeros(a.shape[0])
            for place in range(j + 1, len(instants)):
                gam = response(case.system, t, instants[place] + 1) @ np.asarray(
                    case.system.E[instants[place]]
                )
                c[place] = LEVEL * sum(np.linalg.norm(a[r] @ gam) for r in range(place, len(instants)))
                W = np.clip(solved.paths.x[:, instants[place:]], -LEVEL, LEVEL) @ a[place : len(instants)]
                variance = solved.mean(np.sum((W @ gam) ** 2, axis=1)) ** 0.5
                size_of[place] += kx * before * variance + c[place] * (kx * inside + products)
                term = (kx * pieces[j].score0 + pieces[j].Q2_0)[:, None] * (W @ gam)
                linear[place] = linear.get(place, 0) + known_at(solved, instants[place], term)
            sup += c * np.sum(c)
        for place, term in linear.items():
            exact[place] = solved.mean(np.sum(term**2, axis=1)) ** 0.5
        np.testing.assert_allclose(effects.sup[h, i], sup, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(effects.size[h, i], size_of, rtol=1e-9, atol=1e-14)
        assert np.all(exact <= size_of)


def score_until(case, solved, instant, a):
    """a.s0 before an instant."""
    x, gamma = solved.paths.x, np.asarray(case.system.gamma)
    terms = (solved.paths.nu0[r] * x[:, [r]] + gamma[r] * (x[:, [r]] ** 2 - 1) for r in range(instant))
    return sum((term @ a for term in terms), np.zeros(len(x)))


def known_at(solved, instant, values):
    """E [values | x up to an instant] on the grid of paths."""
    _, weights = clipped_rule(LEVEL)
    count = len(weights)
    later = solved.paths.x.shape[1] - 1 - instant
    grid = values.reshape(-1, count**later, values.shape[1])
    tail = functools.reduce(np.multiply.outer, [weights] * later, np.ones(())).ravel()
    return np.repeat(np.einsum("t,ntm->nm", tail, grid), count**later, axis=0)
