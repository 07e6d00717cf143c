from collections import deque

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from varied_plants import varied_branch

from lqgap.theory.lower_bounds.van_trees.climbing import Pair, ascent, climb, moved, slope_at
from lqgap.theory.lower_bounds.van_trees.fields import gauss_rule, make_basis
from lqgap.theory.lower_bounds.van_trees.nodes import box_of, make_nodes
from lqgap.theory.lower_bounds.van_trees.search import find_shares, first_choice, mean_value


def test_on_a_quadratic_function_pairs_of_conjugate_steps_give_newtons_step():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    curvature = root @ root.T + np.eye(5)
    values, vectors = np.linalg.eigh(curvature)
    pairs = deque(Pair(v, value * v) for value, v in zip(values, vectors.T, strict=True))
    slope = rng.normal(size=5)
    np.testing.assert_allclose(ascent(slope, pairs), np.linalg.solve(curvature, slope), rtol=1e-10)


def test_the_last_step_is_what_its_change_of_the_slope_asks_for():
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(3, 6))
    pairs = deque(Pair(step, step + 0.1 * rng.normal(size=6)) for step in steps)
    np.testing.assert_allclose(ascent(pairs[-1].change, pairs), pairs[-1].step, rtol=1e-10)


@pytest.fixture(scope="module")
def start():
    points, weights = gauss_rule(2, 5)
    box = box_of(varied_branch(2, 1))
    nodes = make_nodes(box, jnp.asarray(points), jnp.asarray(weights), horizon=2, ends=False, length=3)
    basis = make_basis(2)
    return nodes, basis, *first_choice(nodes, basis, level=1.5, young=(0.5, 0.4, 0.2))


@pytest.mark.slow
def test_the_slope_is_the_change_of_the_bound_along_a_step(start):
    nodes, basis, choice, found, factors = start
    slope = np.asarray(slope_at(choice, found.shares, factors, nodes, basis))
    direction = np.random.default_rng(2).normal(size=slope.shape) / np.sqrt(len(slope))
    size = 1e-5  # central differences: their error is of its square
    value = eqx.filter_jit(mean_value)
    ahead, behind = (
        float(value(moved(choice, jnp.asarray(sign * size * direction), factors), found.shares, nodes, basis))
        for sign in (1, -1)
    )
    np.testing.assert_allclose((ahead - behind) / (2 * size), slope @ direction, rtol=1e-5)


@pytest.mark.slow
def test_climbing_never_lowers_the_bound_and_values_are_those_of_the_choice(start):
    nodes, basis, choice, found, factors = start
    assert found.mean > 0
    means = [found.mean]
    for iterations in (1, 4):
        better, after = climb(choice, found, factors, nodes, basis, iterations=iterations)
        assert after.is_finite
        means.append(after.mean)
        again = find_shares(better, nodes, basis, after.shares[None])
        assert again.mean >= after.mean * (1 - 1e-9)
        np.testing.assert_allclose(
            eqx.filter_jit(mean_value)(better, after.shares, nodes, basis), after.mean, rtol=1e-9
        )
    assert means[0] < means[1] < means[2]
