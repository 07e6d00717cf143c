"""The test functions of a field, by their definition as a divergence, at records that are held fixed."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_paths import follow_paths, pieces_of
from van_trees_cases import LEVEL, mutant
from varied_plants import SIZES, read_record, varied_branch

from lqgap.theory.lower_bounds.van_trees.fields import Prior, gauss_rule, make_basis
from lqgap.theory.lower_bounds.van_trees.moments import Row
from lqgap.theory.lower_bounds.van_trees.sensitivity import sensitivity_of

STEPS, LENGTH = 3, 4


def prior_of(parameters):
    return Prior(jnp.linspace(0.4, -0.3, parameters), jnp.linspace(-0.2, 0.5, parameters))


@pytest.mark.parametrize("parameters", [1, 2])
def test_fields_vanish_at_the_faces_and_their_divergences_have_mean_zero(parameters):
    """A rule of 16 points is exact to rounding for functions as smooth as these."""
    basis, prior = make_basis(parameters), prior_of(parameters)
    points, weights = gauss_rule(parameters, 16 if parameters < 3 else 10)
    values = jax.vmap(basis, (0, None))(jnp.asarray(points), prior)
    mass = weights * np.exp(jax.vmap(prior.log_density)(jnp.asarray(points)))
    np.testing.assert_allclose(np.tensordot(mass, values[:, :, -1], axes=1), 0, atol=1e-10)
    assert np.max(np.abs(values[:, :, -1])) > 0.1
    for k, side in itertools.product(range(parameters), (-1.0, 1.0)):
        face = jnp.full(parameters, 0.3).at[k].set(side)
        np.testing.assert_allclose(basis(face, prior)[:, k], 0, atol=1e-14)


def test_gauss_rules_have_unit_mass_and_integrate_polynomials():
    points, weights = gauss_rule(2, 5)
    np.testing.assert_allclose(weights @ np.ones(25), 1, rtol=1e-12)
    np.testing.assert_allclose(weights @ (points[:, 0] ** 8 * points[:, 1] ** 2), 1 / 27, rtol=1e-12)


def instants_of(h, outputs):
    last = (h + 1) * outputs - 1
    return list(range(last, max(last - LENGTH, -1), -1))


def record_of(inputs, outputs):
    rng = np.random.default_rng(inputs + 4 * outputs)
    return rng.normal(size=(STEPS, outputs)), rng.normal(size=(STEPS, inputs))


def coefficients_of(basis_size, inputs):
    return jnp.asarray(np.random.default_rng(3).normal(size=(STEPS, inputs, LENGTH, basis_size)))


@eqx.filter_jit
def by_definition(branch, z, prior, basis, y, u):
    """Of every step: log p, v = sum_k d_k(p W^k)/p, u* and sum_k d_k u* W^k, in units of inputs."""
    outputs, inputs = y.shape[1], u.shape[1]
    coefficients = coefficients_of(len(basis(z, prior)), inputs)

    def read(z):
        reading = read_record(branch.plant(z), y, u, ends=False)
        chi = jnp.clip(reading.x.ravel(), -LEVEL, LEVEL)
        a = jnp.einsum("hilb,bk->hilk", coefficients, basis(z, prior)[:, :-1])
        W = jnp.stack(
            [jnp.einsum("ilk,l->ik", a[h][:, : len(places)], chi[jnp.array(places)]) for h, places in windows]
        )
        return reading.log_density + prior.log_density(z), W, reading.best

    windows = [(h, instants_of(h, outputs)) for h in range(STEPS)]
    log_p, W, best = read(z)
    d_log_p, d_W, d_best = jax.jacfwd(read)(z)
    v = jnp.einsum("hikk->hi", d_W) + jnp.einsum("hik,hk->hi", W, d_log_p)
    return log_p, v, best, jnp.einsum("hik,hik->hi", d_best, W)


@eqx.filter_jit
def system_and_rows(branch, z, prior, basis):
    system = sensitivity_of(branch.plant, z, horizon=STEPS - 1, ends=False)
    coefficients = coefficients_of(len(basis(z, prior)), system.E.shape[-1])
    field = jnp.einsum("hilb,bk->hilk", coefficients, basis(z, prior))
    # In units of the root of the cost, which depends on the parameters: after the divergence was taken.
    return system, jnp.einsum("hij,hilk->hjlk", jnp.linalg.inv(system.root), field)


def by_increments(system, rows, y, u, reading):
    """The sum of the D_j of `moments` for every step and input, in units of the root of the cost."""
    x = np.asarray(reading.x).reshape(1, -1)
    deviations = np.einsum("hij,hj->hi", system.root, u - reading.best)
    paths = follow_paths(system, x, lambda known: deviations[[known.x.shape[1] // y.shape[1] - 1]])
    found = np.zeros(rows.shape[:2])
    for h, i in np.ndindex(*found.shape):
        row = Row(rows[h, i, :, :-1], rows[h, i, :, -1])
        pieces = pieces_of(system, paths, row, instants_of(h, y.shape[1]), LEVEL)
        found[h, i] = sum(piece.D[0] for piece in pieces)
    return found


@pytest.mark.parametrize(
    "size", [(2, 2), *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[:3])]
)
def test_the_divergence_of_a_field_is_the_sum_of_its_increments(size):
    branch, prior, basis, z = varied_branch(*size), prior_of(2), make_basis(2), jnp.array([0.3, -0.4])
    y, u = record_of(*size)
    _, v, _, _ = by_definition(branch, z, prior, basis, y, u)
    system, rows = system_and_rows(branch, z, prior, basis)
    system = jax.tree.map(np.asarray, system)
    reading = eqx.filter_jit(read_record)(branch.plant(z), y, u, ends=False)
    exact = np.einsum("hij,hi->hj", np.linalg.inv(system.root), v)
    np.testing.assert_allclose(by_increments(system, rows, y, u, reading), exact, rtol=1e-9, atol=1e-10)
    for name in ("gamma", "N", "F", "G", "E"):
        other = by_increments(mutant(system, name, -1), rows, y, u, reading)
        assert np.max(np.abs(other - exact)) > 1e-3, name


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (2, 2)])
def test_given_a_record_the_test_has_mean_zero_and_meets_the_best_input_by_psi(size):
    """By sums over the parameter. The clip has kinks: in cells of 1/250 they leave errors of order 1e-5."""
    branch, prior, basis = varied_branch(*size, names=("first",)), prior_of(1), make_basis(1)
    y, u = record_of(*size)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    cells = np.linspace(-1, 1, 501)
    z = ((cells[:-1, None] + cells[1:, None]) / 2 + nodes[None, :] / 500).reshape(-1, 1)
    weight = np.tile(weights / 2, 500) / 500
    at = eqx.filter_vmap(by_definition, in_axes=(None, 0, None, None, None, None))
    log_p, v, best, meets = at(branch, jnp.asarray(z), prior, basis, y, u)
    for h in range(STEPS):
        mass = weight * np.exp(log_p[:, h] - np.max(log_p[:, h]))
        mass = mass / mass.sum()
        size = np.sqrt(mass @ v[:, h] ** 2)
        np.testing.assert_allclose(mass @ v[:, h] / size, 0, atol=3e-5)
        together, apart = mass @ (best * v)[:, h], mass @ meets[:, h]
        np.testing.assert_allclose(together + apart, 0, atol=3e-5 * np.max(size) * np.max(np.abs(best)))
        assert np.max(np.abs(apart)) > 1e-2
