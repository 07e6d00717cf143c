import equinox as eqx
import numpy as np
import pytest
from van_trees_cases import moments_of, no_deviation, small_case, solve_paths
from varied_plants import SIZES

from lqgap.theory.lower_bounds.van_trees.clipping import ClippedNormal

MOMENTS = [name for name in ClippedNormal.__dataclass_fields__ if name != "level"]


def exact_second_moments(case):
    """E v^2, E (sum of D_j^2) and E Q2^2 by place, along all paths."""
    solved = solve_paths(case, no_deviation(case))
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
    whole, parts, products = exact_second_moments(case)
    found = moments_of(case)
    np.testing.assert_allclose(parts, whole, rtol=1e-11)
    np.testing.assert_allclose(found.total, whole, rtol=1e-11)
    np.testing.assert_allclose(found.products, products, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_psi_meets_the_window_sum_by_its_response(size):
    case = small_case(size)
    solved = solve_paths(case, no_deviation(case))
    for h, i in case.tests:
        exact = solved.mean(np.sum(solved.paths.psi0[h][:, :, i] * solved.W[h, i], axis=1))
        found = case.chi.product * np.sum(np.asarray(case.window.psi)[h, :, :, i] * case.rows.a[h, i])
        np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-14)


def test_every_moment_of_the_clip_and_every_term_of_the_window_is_needed():
    """Mutants: one per cent off, or left out, and the second moment is another one."""
    case = small_case((1, 1))
    whole, _, _ = exact_second_moments(case)
    mutants = {
        name: case._replace(chi=eqx.tree_at(lambda chi: getattr(chi, name), case.chi, replace_fn=lambda m: 1.01 * m))
        for name in MOMENTS
    }
    for name in ("gamma", "g", "shared", "spread", "information"):
        changed = eqx.tree_at(lambda window: getattr(window, name), case.window, replace_fn=lambda leaf: 0 * leaf)
        mutants[name] = case._replace(window=changed)
    flipped = eqx.tree_at(lambda window: window.gamma, case.window, replace_fn=lambda leaf: -leaf)
    mutants["sign of gamma"] = case._replace(window=flipped)
    off = {name: np.max(np.abs(moments_of(mutant).total / whole - 1)) for name, mutant in mutants.items()}
    assert min(off.values()) > 1e-6, off
