import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads
from random_systems import random_definite, random_matrices

from lqgap.errors import InvalidSystemError, NotConvergedError
from lqgap.linalg import solve_lyapunov
from lqgap.linalg.lyapunov import lyapunov_sum


def stable(seed, *, size=4, radius=0.9):
    rng = np.random.default_rng(seed)
    (A, _, _), _ = random_matrices(rng, states=size, radius=radius)
    return jnp.asarray(A), jnp.asarray(random_definite(rng, size))


@pytest.mark.parametrize("radius", [0.1, 0.9, 0.999, 0.99999])
def test_the_solution_satisfies_the_equation_and_agrees_with_scipy(seed, radius):
    A, Q = stable(seed, radius=radius)
    solution = solve_lyapunov(A, Q)
    # The condition of the equation is of order 1 / (1 - radius^2), times rounding of 1e-16.
    tolerance = 1e-13 / (1 - radius**2)
    np.testing.assert_allclose(solution.X, A @ solution.X @ A.T + Q, rtol=1e-9)
    error = np.linalg.norm(solution.X - scipy.linalg.solve_discrete_lyapunov(A, Q))
    assert error <= 10 * tolerance * np.linalg.norm(solution.X)


def test_nilpotent_and_zero_matrices_need_no_decay():
    A = jnp.asarray([[0.0, 5.0], [0.0, 0.0]])
    np.testing.assert_allclose(solve_lyapunov(A, jnp.eye(2)).X, [[26.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(solve_lyapunov(0 * A, jnp.eye(2)).X, np.eye(2))


@pytest.mark.parametrize("radius", [1.0, 1.0 + 1e-12, 1.3])
def test_an_unstable_matrix_raises_outside_jit_and_is_marked_inside(radius):
    A = radius * jnp.eye(2)
    with pytest.raises(NotConvergedError, match=r"rho\(A\) must be below 1"):
        solve_lyapunov(A, jnp.eye(2))
    assert not jax.jit(solve_lyapunov)(A, jnp.eye(2)).converged


def test_an_unstable_mode_that_the_right_side_does_not_excite_is_not_overlooked():
    A, Q = jnp.diag(jnp.asarray([0.5, 2.0])), jnp.diag(jnp.asarray([1.0, 0.0]))
    assert not jax.jit(solve_lyapunov)(A, Q).converged


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


def test_shapes_are_checked():
    with pytest.raises(InvalidSystemError, match=r"Q has shape \(3, 3\), expected \(2, 2\)"):
        solve_lyapunov(jnp.eye(2), jnp.eye(3))


def test_an_asymmetric_right_side_is_named():
    with pytest.raises(InvalidSystemError, match="Q is not symmetric"):
        solve_lyapunov(0.5 * jnp.eye(2), [[1.0, 1.0], [0.0, 1.0]])
