"""The discrete Lyapunov equation X = A X A' + Q, by doubling.

    X_{k+1} = X_k + A_k X_k A_k' ,   A_{k+1} = A_k^2 ,   X_0 = Q ,   A_0 = A

so that X_k is the sum of the first 2^k terms A^j Q A'^j. The equation is linear in X, and
`custom_linear_solve` differentiates the equation instead of the iteration.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

MAX_DOUBLINGS = 60  # 2^60 terms: more than any spectral radius below 1 in double precision needs


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
