"""The clipped belief: the steady filter restricted to the last `length` observations and inputs.

    x^c_t = sum_{s=1}^{length} calA^{s-1} g_{t-s+1} ,   g_t = (I - LC) B u_{t-1} + L y_t ,   calA = (I - LC) A

with u_{-1} = 0 and g_s = 0 for s < 0. It slides in constant time,

    x^c_t = calA x^c_{t-1} + g_t - calA^length g_{t-length} ,

and what it predicts is linear in the window eta = (u_{t-1}..u_{t-length}, y_t..y_{t-length+1}, u):

    C (A x^c_t + B u) = N eta ,   N = [ C Abar B .. C Abar^length B | C F .. C Abar^{length-1} F | C B ]

with Abar = A - FC, so that a clipped prediction depends on the plant through its predictor Markov
parameters alone. What it leaves out is, in units of the innovation, S^-1/2 C Abar^length A xhat_{t-length}.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lqgap.arguments import IntLike, MatrixLike, read_count, read_record
from lqgap.linalg.psd import inverse_sqrt_psd
from lqgap.systems.innovation import complete
from lqgap.systems.lqg import LQG
from lqgap.systems.markov import predictor_markov_parameters
from lqgap.systems.optimum import Optimum, filter_matrix, predictor_matrix

MAX_LENGTH = 2_000  # of a window that is searched for


class ClippedState(eqx.Module):
    """The belief, and the ring of the terms g it is made of."""

    belief: Float[Array, " state"]
    terms: Float[Array, "window state"]
    oldest: Int[Array, ""]


class ClippedFilter(eqx.Module):
    """The sliding recursion as an init/step pair; cost and memory do not grow with time."""

    transition: Float[Array, "state state"]
    forget: Float[Array, "state state"]  # calA^length
    input_gain: Float[Array, "state input"]
    output_gain: Float[Array, "state output"]
    predict_state: Float[Array, "output state"]  # C A and C B: what a lost observation is taken to be
    predict_input: Float[Array, "output input"]
    S: Float[Array, "output output"]
    length: int = eqx.field(static=True)

    def __init__(self, optimum: Optimum, plant: LQG, *, length: IntLike):
        self.length = read_count("length", length, least=1)
        self.transition = filter_matrix(optimum, plant)
        self.forget = jnp.linalg.matrix_power(self.transition, self.length)
        self.input_gain = plant.B - optimum.L @ (plant.C @ plant.B)
        self.output_gain = optimum.L
        self.predict_state, self.predict_input = plant.C @ plant.A, plant.C @ plant.B
        self.S = optimum.S

    def init(self) -> ClippedState:
        """Before the first observation."""
        num_states = len(self.transition)
        return ClippedState(
            belief=jnp.zeros(num_states, self.transition.dtype),
            terms=jnp.zeros((self.length, num_states), self.transition.dtype),
            oldest=jnp.asarray(0),
        )

    def step(
        self, state: ClippedState, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> ClippedState:
        """Take in y_t and the input u_{t-1} that came before it (zero at first).

        A lost component of y (NaN) is taken as expected from those seen.
        """
        expected = self.predict_state @ state.belief + self.predict_input @ u_last
        term = self.input_gain @ u_last + self.output_gain @ complete(y, expected, self.S)
        belief = self.transition @ state.belief + term - self.forget @ state.terms[state.oldest]
        return ClippedState(
            belief=belief,
            terms=state.terms.at[state.oldest].set(term),
            oldest=(state.oldest + 1) % self.length,
        )


def clipped_beliefs(
    optimum: Optimum, plant: LQG, y: MatrixLike, u: MatrixLike, *, length: IntLike
) -> Float[Array, "time state"]:
    """x^c_t along a record, rows (time, output) and (time, input)."""
    clipped = ClippedFilter(optimum, plant, length=length)
    y, u = read_record(y, u, num_outputs=plant.num_outputs, num_inputs=plant.num_inputs)
    return _clipped_beliefs(clipped, y, u)


def arx_matrix(optimum: Optimum, plant: LQG, *, length: IntLike) -> Float[Array, "output window"]:
    """N: from the window eta to the predicted next observation."""
    length = read_count("length", length, least=1)
    of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=length + 1)
    return jnp.concatenate([*of_inputs[1:], *of_outputs[:length], of_inputs[0]], axis=1)


def clipping_error(optimum: Optimum, plant: LQG, *, length: IntLike) -> Float[Array, "output state"]:
    """S^-1/2 C Abar^length A: from the belief before the window to what its prediction leaves out."""
    length = read_count("length", length, least=1)
    forgotten = jnp.linalg.matrix_power(predictor_matrix(optimum, plant), length)
    return inverse_sqrt_psd(optimum.S) @ plant.C @ forgotten @ plant.A


def clipping_errors(
    optimum: Optimum, plant: LQG, size_fn: Callable[[Array], Array]
) -> Float[Array, " length"]:
    """The sizes of `clipping_error` for the lengths 1..MAX_LENGTH."""
    Abar = predictor_matrix(optimum, plant)

    def longer(power: Array, _: None) -> tuple[Array, Array]:
        power = power @ Abar
        return power, size_fn(power @ plant.A)

    return jax.lax.scan(longer, inverse_sqrt_psd(optimum.S) @ plant.C, length=MAX_LENGTH)[1]


def arx_window(
    y: Float[Array, "time output"], u: Float[Array, "time input"], *, length: IntLike
) -> Float[Array, "time window"]:
    """eta_t for every step of a record without losses, with zeros before its beginning."""
    length = read_count("length", length, least=1)
    past_inputs = [_shift(u, lag) for lag in range(1, length + 1)]
    past_outputs = [_shift(y, lag) for lag in range(length)]
    return jnp.concatenate([*past_inputs, *past_outputs, u], axis=1)


def _shift(signal: Array, lag: int) -> Array:
    return jnp.pad(signal, ((lag, 0), (0, 0)))[: len(signal)]


@jax.jit
def _clipped_beliefs(clipped: ClippedFilter, y: Array, u: Array) -> Array:
    def step(state: ClippedState, record: tuple[Array, Array]) -> tuple[ClippedState, Array]:
        state = clipped.step(state, *record)
        return state, state.belief

    return jax.lax.scan(step, clipped.init(), (y, _shift(u, 1)))[1]
