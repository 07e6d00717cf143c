import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import directional_difference, random_definite

from lqgap.linalg import (
    inverse_sqrt_psd,
    log_det_psd,
    quadratic,
    solve_psd,
    sqrt_psd,
    symmetrize,
)


def test_the_root_squares_to_the_matrix_even_when_it_is_singular(seed):
    X = random_definite(np.random.default_rng(seed), 4)
    X[:, 0] = X[0, :] = 0
    root = sqrt_psd(jnp.asarray(X))
    np.testing.assert_allclose(root @ root, X, atol=1e-12)
    np.testing.assert_allclose(root, root.T, atol=1e-14)


def test_the_inverse_root_whitens(seed):
    X = jnp.asarray(random_definite(np.random.default_rng(seed), 4))
    root = inverse_sqrt_psd(X)
    np.testing.assert_allclose(root @ X @ root, np.eye(4), atol=1e-11)


def test_solve_log_det_and_quadratic_agree_with_numpy(seed):
    rng = np.random.default_rng(seed)
    X, y = jnp.asarray(random_definite(rng, 4)), jnp.asarray(rng.normal(size=4))
    np.testing.assert_allclose(solve_psd(X, y), np.linalg.solve(X, y), rtol=1e-10)
    np.testing.assert_allclose(log_det_psd(X), np.linalg.slogdet(X)[1], rtol=1e-10)
    np.testing.assert_allclose(quadratic(y, X), np.einsum("i,ij,j", y, X, y), rtol=1e-12)


def test_symmetrize_keeps_the_quadratic_form(seed):
    rng = np.random.default_rng(seed)
    X, y = jnp.asarray(rng.normal(size=(3, 3))), jnp.asarray(rng.normal(size=3))
    np.testing.assert_allclose(quadratic(y, symmetrize(X)), quadratic(y, X), rtol=1e-12)


def test_all_are_batched_by_vmap(seed):
    rng = np.random.default_rng(seed)
    batch = jnp.asarray([random_definite(rng, 3) for _ in range(5)])
    np.testing.assert_allclose(jax.vmap(sqrt_psd)(batch)[2], sqrt_psd(batch[2]), rtol=1e-12)


@pytest.mark.parametrize("function", [sqrt_psd, inverse_sqrt_psd])
@pytest.mark.parametrize("X", [np.eye(3) * 2.0, np.diag([1.0, 1.0, 4.0])])
def test_roots_can_be_differentiated_where_eigenvalues_repeat(function, X):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(3, 3))
    direction = jnp.asarray(direction + direction.T)
    weight = jnp.asarray(rng.normal(size=(3, 3)))

    def value(X):
        return jnp.sum(weight * function(X))

    slope = jnp.sum(jax.grad(value)(jnp.asarray(X)) * direction)
    expected = directional_difference(value, [jnp.asarray(X)], [direction])
    np.testing.assert_allclose(slope, expected, rtol=1e-8)
