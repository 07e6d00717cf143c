import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from van_trees_cases import LEVEL, Case, Rows, no_deviation, problem_of, solve_paths, value_of
from varied_plants import varied_branch

from lqgap.theory.lower_bounds.van_trees.clipping import clipped_normal
from lqgap.theory.lower_bounds.van_trees.deviations import Young, best_deviation
from lqgap.theory.lower_bounds.van_trees.fields import Prior, make_basis
from lqgap.theory.lower_bounds.van_trees.nodes import box_of, make_nodes
from lqgap.theory.lower_bounds.van_trees.search import Choice, find_shares

STEPS, LENGTH = 3, 3


@functools.cache
def nodes_at(points, size=(2, 1)):
    z = jnp.asarray(points)
    return make_nodes(
        box_of(varied_branch(*size)),
        z,
        jnp.ones(len(z)) / len(z),
        horizon=STEPS - 1,
        ends=False,
        length=LENGTH,
    )


def some_choice(basis):
    rng = np.random.default_rng(2)
    return Choice(
        jnp.asarray(0.02 * rng.normal(size=(STEPS, LENGTH, 2, len(basis(jnp.zeros(2), flat()))))),
        Prior(jnp.array([0.3, -0.2]), jnp.array([0.1, -0.4])),
        jnp.log(jnp.asarray(LEVEL)),
        jnp.log(jnp.array([0.7, 1.3, 0.2])),
    )


def flat():
    return Prior(jnp.zeros(2), jnp.zeros(2))


def starts_for(count):
    return jnp.broadcast_to(jnp.array([0.6, 0.8])[:, None, None], (2, count, STEPS))


@eqx.filter_jit
def best(problem, share, constants):
    return best_deviation(problem, share, Young(*constants)).value


def test_the_value_at_a_node_is_that_of_its_definition():
    """lin and quad along all paths; the field in units of inputs is the same function at every plant."""
    points = ((0.2, -0.5), (-0.9, 0.4), (0.0, 0.0))
    nodes, basis = nodes_at(points), make_basis(2)
    choice = some_choice(basis)
    found = find_shares(choice, nodes, basis, starts_for(3))
    assert found.is_finite
    for row, z in enumerate(points):
        system, window = jax.tree.map(lambda leaf: leaf[row], (nodes.system, nodes.window))  # noqa: B023
        units = nodes.system.root[2]  # those of the middle plant, which is the last point here
        field = np.einsum("hji,hljb,bk->hilk", units, choice.coefficients, basis(jnp.array(z), choice.prior))
        rows = np.einsum("hij,hilk->hjlk", np.linalg.inv(system.root), field)
        rows = jnp.asarray(rows * np.asarray(window.is_inside)[:, None, :, None])
        case = Case(system, window, clipped_normal(jnp.asarray(LEVEL)), Rows(rows[..., :-1], rows[..., -1]))
        share = np.asarray(found.shares[row])
        at_rest = value_of(solve_paths(case, no_deviation(case)), share)
        expected = at_rest + best(problem_of(case), jnp.asarray(share), jnp.exp(choice.log_young))
        np.testing.assert_allclose(found.values[row], expected, rtol=1e-7, atol=1e-9)


def test_shares_and_values_are_functions_of_the_point_alone():
    """Whichever other points are in the batch: so there is an integrand between the nodes."""
    basis = make_basis(2)
    choice = some_choice(basis)
    one = find_shares(choice, nodes_at(((0.2, -0.5), (-0.9, 0.4), (0.0, 0.0))), basis, starts_for(3))
    other = find_shares(choice, nodes_at(((0.7, 0.7), (0.0, 0.0), (0.2, -0.5))), basis, starts_for(3))
    np.testing.assert_allclose(one.values[0], other.values[2], rtol=1e-9)
    np.testing.assert_allclose(one.shares[0], other.shares[2], rtol=1e-7)
    assert np.all((one.shares > 0) & (one.shares < 1))


@pytest.mark.slow
def test_more_rounds_of_passes_never_lower_a_value():
    basis = make_basis(2)
    nodes, choice = nodes_at(((0.2, -0.5), (-0.9, 0.4), (0.0, 0.0))), some_choice(basis)
    once, twice = (find_shares(choice, nodes, basis, starts_for(3), rounds=rounds) for rounds in (1, 2))
    assert np.all(twice.values >= once.values)
