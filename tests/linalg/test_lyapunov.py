import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads
from random_systems import random_definite, random_matrices

from lqgap.linalg.lyapunov import lyapunov_sum


def stable(seed, *, size=4, radius=0.9):
    rng = np.random.default_rng(seed)
    (A, _, _), _ = random_matrices(rng, states=size, radius=radius)
    return jnp.asarray(A), jnp.asarray(random_definite(rng, size))


@pytest.mark.parametrize("radius", [0.1, 0.9, 0.999, 0.99999])
def test_the_solution_satisfies_the_equation_and_agrees_with_scipy(seed, radius):
    A, Q = stable(seed, radius=radius)
    X = lyapunov_sum(A, Q)
    # The condition of the equation is of order 1 / (1 - radius^2), times rounding of 1e-16.
    tolerance = 1e-13 / (1 - radius**2)
    np.testing.assert_allclose(X, A @ X @ A.T + Q, rtol=1e-9)
    error = np.linalg.norm(X - scipy.linalg.solve_discrete_lyapunov(A, Q))
    assert error <= 10 * tolerance * np.linalg.norm(X)


def test_nilpotent_and_zero_matrices_need_no_decay():
    A = jnp.asarray([[0.0, 5.0], [0.0, 0.0]])
    np.testing.assert_allclose(lyapunov_sum(A, jnp.eye(2)), [[26.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(lyapunov_sum(0 * A, jnp.eye(2)), np.eye(2))


@pytest.mark.parametrize("radius", [1.0, 1.0 + 1e-12, 1.3])
def test_a_sum_that_diverges_is_not_finite(radius):
    assert np.all(np.isnan(lyapunov_sum(radius * jnp.eye(2), jnp.eye(2))))


def test_an_unstable_mode_that_the_right_side_does_not_excite_is_not_overlooked():
    A, Q = jnp.diag(jnp.asarray([0.5, 2.0])), jnp.diag(jnp.asarray([1.0, 0.0]))
    assert np.all(np.isnan(lyapunov_sum(A, Q)))


def test_first_and_second_derivatives_agree_with_finite_differences():
    A, Q = stable(0, size=2)
    weight = jnp.asarray(random_definite(np.random.default_rng(50), len(A)))
    check_grads(
        lambda A, Q: jnp.sum(weight * lyapunov_sum(jnp.asarray(A), jnp.asarray(Q))),
        (A, Q),
        order=2,
        rtol=1e-5,
        atol=1e-5,
    )
