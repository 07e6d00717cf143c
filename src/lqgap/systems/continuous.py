"""From continuous time, x' = A x + B u + w, to one step of length `dt`.

    zero-order hold:  exp([[A, B], [0, 0]] dt) = [[Ad, Bd], [0, I]]             (u constant over the step)
    noise (Van Loan): exp([[-A, W], [0, A']] h) = [[., E], [0, Ah']] ,   Wh = Ah E     (W: intensity of w)

Both are linear in B and W, which are scaled to unit size so that large units cost A no digits. Over a long
step exp(-A h) overflows where A decays, so the noise is found over a step h with |A| h <= 1 and doubled
until it is that of dt: W_2h = Wh + Ah Wh Ah'.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import (
    FloatLike,
    MatrixLike,
    is_concrete,
    read_covariance,
    read_pair,
    read_positive,
    read_square,
)
from lqgap.errors import InvalidArgumentError
from lqgap.linalg.psd import symmetrize

MAX_STIFFNESS = 1e9  # of |A| dt: each of its 30 squarings may cost half a digit
MAX_SQUARINGS = 32


def zero_order_hold(
    A: MatrixLike, B: MatrixLike, *, dt: FloatLike
) -> tuple[Float[Array, "state state"], Float[Array, "state input"]]:
    """The discrete A and B of a continuous plant whose input is held constant over each step."""
    (A, B), dt = read_pair(A, B), read_positive("dt", dt)
    _require_resolution(A, dt)
    return _require_finite(_hold(A, B, dt))


def accumulate_noise(A: MatrixLike, W: MatrixLike, *, dt: FloatLike) -> Float[Array, "state state"]:
    """The covariance that white noise of intensity W adds to the state over one step."""
    A, dt = read_square("A", A), read_positive("dt", dt)
    W = read_covariance("W", W, size=len(A), definite=False, why="it must be of the size of A")
    _require_resolution(A, dt)
    return _require_finite(_accumulate(A, W, dt))


@jax.jit
def _hold(A: Array, B: Array, dt: Any) -> tuple[Array, Array]:
    n, m = B.shape
    size = _size(B)
    generator = jnp.zeros((n + m, n + m)).at[:n, :n].set(A * dt).at[:n, n:].set(B / size)
    held = jsl.expm(generator, max_squarings=MAX_SQUARINGS)
    return held[:n, :n], held[:n, n:] * size * dt


@jax.jit
def _accumulate(A: Array, W: Array, dt: Any) -> Array:
    n = len(A)
    size = _size(W)
    stiffness = jax.lax.stop_gradient(jnp.linalg.norm(A, ord=1) * dt)
    num_doublings = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(stiffness, 1))), 0, MAX_SQUARINGS)
    step = dt / 2**num_doublings
    generator = jnp.block([[-A * step, W / size], [jnp.zeros((n, n)), A.T * step]])
    short = jsl.expm(generator, max_squarings=MAX_SQUARINGS)
    transition = short[n:, n:].T

    def double(carry: tuple[Array, Array], count: Array) -> tuple[tuple[Array, Array], None]:
        transition, noise = carry
        doubled = transition @ transition, noise + transition @ noise @ transition.T
        return jax.tree.map(lambda new, old: jnp.where(count < num_doublings, new, old), doubled, carry), None

    (_, noise), _ = jax.lax.scan(double, (transition, transition @ short[:n, n:]), jnp.arange(MAX_SQUARINGS))
    return symmetrize(noise) * size * step


def _size(X: Array) -> Array:
    """A norm to divide by, which is not differentiated and not zero."""
    norm = jax.lax.stop_gradient(jnp.linalg.norm(X, ord=1))
    return jnp.where(norm > 0, norm, 1.0)


def _require_resolution(A: Array, dt: Any) -> None:
    if is_concrete((A, dt)) and np.linalg.norm(A, 1) * dt > MAX_STIFFNESS:
        raise InvalidArgumentError(
            f"dt is {dt:g}, too long for this plant: |A| dt is {np.linalg.norm(A, 1) * dt:.3g}, and beyond "
            f"{MAX_STIFFNESS:g} the matrix exponential loses its digits; shorten dt or drop the fast states"
        )


def _require_finite(answer: Any) -> Any:
    if is_concrete(answer) and not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(answer)):
        raise InvalidArgumentError(
            "the matrix exponential over dt is beyond double precision: an unstable mode grows too far "
            "within one step, or the units are badly scaled"
        )
    return answer
