"""From continuous time, x' = A x + B u + w, to one step of length `dt`.

    zero-order hold:  exp([[A, B], [0, 0]] dt) = [[Ad, Bd], [0, I]]             (u constant over the step)
    noise (Van Loan): exp([[-A, W], [0, A']] h) = [[., E], [0, Ah']] ,   Wh = Ah E     (W: intensity of w)
    delay (k + f) dt: x_{t+1} = Ad x_t + A((1-f) dt) B(f dt) u_{t-k-1} + B((1-f) dt) u_{t-k} ,  0 <= f < 1
                      (the old input still acts for the time f dt; A(h), B(h): the hold over a time h)

The first two are linear in B and W, which are scaled to unit size so that large units cost A no digits. Over
a long step exp(-A h) overflows where A decays, so the noise is found over a step h with |A| h <= 1 and
doubled until it is that of dt: W_2h = Wh + Ah Wh Ah'.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import (
    ArrayLike,
    FloatLike,
    MatrixLike,
    is_concrete,
    read_covariance,
    read_not_negative,
    read_numbers,
    read_pair,
    read_positive,
    read_square,
)
from lqgap.errors import InvalidArgumentError
from lqgap.linalg.psd import symmetrize
from lqgap.systems.lqg import LQG
from lqgap.systems.transform import with_past_inputs

MAX_STIFFNESS = 1e9  # of |A| dt: each of its 30 squarings may cost half a digit
MAX_SQUARINGS = 32
MAX_PAST = 1000  # past inputs in the state
WHOLE = 1e-9  # of a step: nearer to the next whole number is rounding


def zero_order_hold(
    A: MatrixLike, B: MatrixLike, *, dt: FloatLike
) -> tuple[Float[Array, "state state"], Float[Array, "state input"]]:
    """The discrete A and B of a continuous plant whose input is held constant over each step."""
    (A, B), dt = read_pair(A, B), read_positive("dt", dt)
    _require_resolution(A, dt)
    return _require_finite(_hold(A, B, dt))


def discretize(plant: LQG, *, dt: FloatLike, delay: ArrayLike = 0.0, longest: FloatLike | None = None) -> LQG:
    """The plant in steps of `dt`, from one whose A, B and W (an intensity) are in continuous time.

    C and S0 stay, and so do V, the covariance of one sample, and Q and R, which weigh a sample and an input
    that is held. A sensor of intensity V that averages over the step has the covariance V / dt.

    Args:
        delay: time until an input acts, one for all inputs or one for each; past inputs join the state.
        longest: keep as many past inputs as this delay needs, so that plants of different delay have one
            size; by default the longest of `delay`, which must then be known.
    """
    Ad, Bd = zero_order_hold(plant.A, plant.B, dt=dt)
    held = eqx.tree_at(lambda p: (p.A, p.B, p.W), plant, (Ad, Bd, accumulate_noise(plant.A, plant.W, dt=dt)))
    delays = _read_delays(delay, plant.num_inputs)
    num_past = _count_past(delays, dt, longest)
    if num_past == 0:
        return held
    columns = jax.vmap(_delay_column, in_axes=(None, 1, None, 0, None), out_axes=2)
    return with_past_inputs(held, columns(plant.A, plant.B, dt, delays, jnp.arange(num_past + 1)))


def accumulate_noise(A: MatrixLike, W: MatrixLike, *, dt: FloatLike) -> Float[Array, "state state"]:
    """The covariance that white noise of intensity W adds to the state over one step."""
    A, dt = read_square("A", A), read_positive("dt", dt)
    W = read_covariance("W", W, size=len(A), definite=False, why="it must be of the size of A")
    _require_resolution(A, dt)
    return _require_finite(_accumulate(A, W, dt))


def _read_delays(delay: Any, num_inputs: int) -> Any:
    """One for each input; of NumPy if they are known, also where the plant is traced."""
    array = np if is_concrete(delay) else jnp
    delays = array.atleast_1d(read_numbers("delay", delay))
    if delays.shape not in ((1,), (num_inputs,)) or (array is np and not np.all(delays >= 0)):
        raise InvalidArgumentError(
            f"delay is {delay!r}, expected a time that is not negative, or {num_inputs}"
        )
    return array.broadcast_to(delays, (num_inputs,))


def _count_past(delays: Any, dt: Any, longest: Any) -> int:
    """How many past inputs still act."""
    most = delays.max()
    if longest is None:
        longest = most
    elif is_concrete(longest):
        longest = read_not_negative("longest", longest)
    if is_concrete((most, longest)) and most == longest == 0:
        return 0
    if not is_concrete((dt, longest)):
        raise InvalidArgumentError(
            "the delay is not known while the plant is built: say how long it can be, longest=..., for a dt "
            "that is a number, since the number of past inputs in the state must stay the same"
        )
    if is_concrete(most) and longest < most:
        raise InvalidArgumentError(f"longest is {longest:g}, expected at least delay = {most:g}")
    steps = np.ceil(longest / np.asarray(dt, dtype=float) - WHOLE)
    if not steps <= MAX_PAST:
        raise InvalidArgumentError(f"a delay of {longest:g} is {steps:.6g} steps, more than {MAX_PAST}")
    return int(steps)


def _delay_column(A: Array, b: Array, dt: Any, delay: Array, lags: Array) -> Array:
    """What the input of each lag adds to the next state; NaN if that is none of those kept."""
    whole = jnp.floor(delay / dt + WHOLE)
    late = jnp.maximum(delay - whole * dt, 0.0)
    (transition, new), (_, old) = _hold(A, b[:, None], dt - late), _hold(A, b[:, None], late)
    gains = jnp.where(lags == whole, new, jnp.where(lags == whole + 1, transition @ old, 0.0))
    return jnp.where((delay >= 0) & (delay / dt <= lags[-1] + WHOLE), gains, jnp.nan).T


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
