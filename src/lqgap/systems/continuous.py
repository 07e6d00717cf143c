"""From continuous time, x' = A x + B u + w, to one step of length `dt`.

    zero-order hold:  exp([[A, B], [0, 0]] dt) = [[Ad, Bd], [0, I]]             (u constant over the step)
    noise (Van Loan): exp([[-A, W], [0, A']] h) = [[., E], [0, Ah']] ,   Wh = Ah E     (W: intensity of w)

Over a long step exp(-A h) overflows where A decays, so the noise is found over h = dt / 2^8 and doubled:
W_2h = Wh + Ah Wh Ah'.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float

from lqgap.errors import InvalidArgumentError
from lqgap.linalg.arguments import (
    MatrixLike,
    is_concrete,
    read_array,
    read_covariance,
    read_positive,
    require_shape,
)
from lqgap.linalg.psd import symmetrize

NUM_DOUBLINGS = 8
MAX_SQUARINGS = 50  # covers every step that double precision resolves; beyond it expm gives NaN


def zero_order_hold(
    A: MatrixLike, B: MatrixLike, *, dt: Any
) -> tuple[Float[Array, "state state"], Float[Array, "state input"]]:
    """The discrete A and B of a continuous plant whose input is held constant over each step."""
    A, B = (read_array(name, value, num_axes=2) for name, value in (("A", A), ("B", B)))
    require_shape("A", A, (len(A), len(A)), why="it must be square")
    require_shape("B", B, (len(A), B.shape[1]), why="it must have as many rows as A")
    return _require_finite(_hold(A, B, read_positive("dt", dt)))


def accumulate_noise(A: MatrixLike, W: MatrixLike, *, dt: Any) -> Float[Array, "state state"]:
    """The covariance that white noise of intensity W adds to the state over one step."""
    A = read_array("A", A, num_axes=2)
    require_shape("A", A, (len(A), len(A)), why="it must be square")
    W = read_covariance("W", W, size=len(A), definite=False, why="it must be of the size of A")
    return _require_finite(_accumulate(A, W, read_positive("dt", dt)))


@jax.jit
def _hold(A: Array, B: Array, dt: Any) -> tuple[Array, Array]:
    n, m = B.shape
    generator = jnp.zeros((n + m, n + m)).at[:n, :n].set(A).at[:n, n:].set(B)
    held = jsl.expm(generator * dt, max_squarings=MAX_SQUARINGS)
    return held[:n, :n], held[:n, n:]


@jax.jit
def _accumulate(A: Array, W: Array, dt: Any) -> Array:
    n = len(A)
    generator = jnp.block([[-A, W], [jnp.zeros((n, n)), A.T]])
    short = jsl.expm(generator * (dt / 2**NUM_DOUBLINGS), max_squarings=MAX_SQUARINGS)
    transition = short[n:, n:].T
    noise = transition @ short[:n, n:]
    for _ in range(NUM_DOUBLINGS):
        noise = noise + transition @ noise @ transition.T
        transition = transition @ transition
    return symmetrize(noise)


def _require_finite(answer: Any) -> Any:
    if is_concrete(answer) and not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(answer)):
        raise InvalidArgumentError(
            "the matrix exponential over dt is beyond double precision: dt is far too long for "
            "this plant, or its units are badly scaled"
        )
    return answer
