"""The discrete Lyapunov equation X = A X A' + Q, by doubling.

    X_{k+1} = X_k + A_k X_k A_k' ,   A_{k+1} = A_k^2 ,   X_0 = Q ,   A_0 = A

so that X_k is the sum of the first 2^k terms A^j Q A'^j. The equation is linear in X, and
`custom_linear_solve` differentiates the equation instead of the iteration.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lqgap.arguments import MatrixLike, is_concrete, read_square, read_symmetric
from lqgap.errors import NotConvergedError
from lqgap.linalg.psd import symmetrize

MAX_DOUBLINGS = 60  # 2^60 terms: more than any spectral radius below 1 in double precision needs
RESIDUAL_TOLERANCE = 1e-8


class LyapunovSolution(eqx.Module):
    """X with its relative residual."""

    X: Float[Array, "n n"]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


def solve_lyapunov(A: MatrixLike, Q: MatrixLike) -> LyapunovSolution:
    """Solve X = A X A' + Q for symmetric Q; outside `jit`, raises when rho(A) >= 1."""
    A = read_square("A", A)
    Q = read_symmetric("Q", Q, size=len(A), why="it must be of the size of A")
    solution = _solve(A, Q)
    if is_concrete(solution) and not solution.converged:
        raise NotConvergedError(
            f"the Lyapunov equation X = A X A' + Q has no positive semidefinite solution that "
            f"double precision can find: rho(A) must be below 1 (relative residual "
            f"{float(solution.residual):.3g})"
        )
    return solution


def lyapunov_sum(A: Float[Array, "n n"], Q: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The sum of A^j Q A'^j over j >= 0, for any square Q; not finite where it diverges."""

    def operator(X: Array) -> Array:
        return X - A @ X @ A.T

    return jax.lax.custom_linear_solve(
        operator,
        Q,
        solve=lambda _, right: _double(A, right),
        transpose_solve=lambda _, right: _double(A.T, right),
    )


@jax.jit
def _solve(A: Array, Q: Array) -> LyapunovSolution:
    X = symmetrize(lyapunov_sum(A, Q))
    residual = jax.lax.stop_gradient(
        jnp.linalg.norm(X - A @ X @ A.T - Q) / jnp.maximum(jnp.linalg.norm(X), jnp.finfo(X.dtype).tiny)
    )
    return LyapunovSolution(X=X, converged=residual <= RESIDUAL_TOLERANCE, residual=residual)


def _double(A: Array, Q: Array) -> Array:
    epsilon = jnp.finfo(Q.dtype).eps

    def goes_on(carry: tuple[Array, Array, Array, Array]) -> Array:
        power, X, increment, count = carry
        # A small increment alone may be a mode that has yet to grow; a small power cannot.
        done = (increment <= epsilon * jnp.linalg.norm(X)) & (jnp.linalg.norm(power) <= 1e-8)
        return ~done & jnp.isfinite(increment) & (count < MAX_DOUBLINGS)

    def double(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        power, X, _, count = carry
        increment = power @ X @ power.T
        return power @ power, X + increment, jnp.linalg.norm(increment), count + 1

    start = (A, Q, jnp.asarray(jnp.finfo(Q.dtype).max, Q.dtype), jnp.asarray(0))
    power, X, _, _ = jax.lax.while_loop(goes_on, double, start)
    # Where the powers do not vanish the sum diverges, even if the loop met its limit first.
    return jnp.where(jnp.linalg.norm(power) <= 1e-8, X, jnp.nan)
