"""Policies with a short memory: the input is linear in the last `length` inputs and observations.

    u_t = sum_{s=0}^{length-1} [ Y_s y_{t-s} + U_s u_{t-1-s} ]

With Y_s = -K calA^s L and U_s = -K calA^s (I - LC) B it is the gain times the clipped belief of a plant;
the taps may also be anything else, and be trained. What happened before the start counts as zero.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import ArrayLike, IntLike, read_array, read_count
from lqgap.errors import InvalidArgumentError
from lqgap.policies.policy import AbstractLinearPolicy, LinearStep
from lqgap.systems import LQG, filter_matrix, predictor_markov_parameters, solve
from lqgap.systems.innovation import complete


class Window(eqx.Module):
    """The last observations and inputs, the newest first."""

    y: Float[Array, "tap output"]
    u: Float[Array, "tap input"]


class ClippedHistory(AbstractLinearPolicy):
    """A policy of `length` taps.

    A lost observation is replaced by what the window predicts: by the model in `from_plant`; without one,
    by the observation before it.
    """

    output_taps: Float[Array, "tap input output"]
    input_taps: Float[Array, "tap input input"]
    expect_from_outputs: Float[Array, "tap output output"]
    expect_from_inputs: Float[Array, "tap_and_one output input"]
    S: Float[Array, "output output"]

    def __init__(self, output_taps: ArrayLike, input_taps: ArrayLike):
        self.output_taps = read_array("output_taps", output_taps, num_axes=3)
        self.input_taps = read_array("input_taps", input_taps, num_axes=3)
        length, inputs, outputs = self.output_taps.shape
        if self.input_taps.shape != (length, inputs, inputs):
            raise InvalidArgumentError(
                f"input_taps has shape {self.input_taps.shape}, expected {(length, inputs, inputs)}: "
                f"output_taps has {length} taps for {inputs} inputs"
            )
        self.expect_from_outputs = jnp.zeros((length, outputs, outputs)).at[0].set(jnp.eye(outputs))
        self.expect_from_inputs = jnp.zeros((length + 1, outputs, inputs))
        self.S = jnp.eye(outputs)

    @classmethod
    def from_plant(cls, plant: LQG, *, length: IntLike) -> "ClippedHistory":
        """The optimal gain times the clipped belief of a plant."""
        length = read_count("length", length, least=1)
        optimum = solve(plant)
        transition = filter_matrix(optimum, plant)

        def next_power(power: Array, _: None) -> tuple[Array, Array]:
            return power @ transition, power

        _, gains = jax.lax.scan(next_power, -optimum.K, length=length)
        policy = cls(gains @ optimum.L, gains @ (plant.B - optimum.L @ (plant.C @ plant.B)))
        of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=length + 1)
        return eqx.tree_at(
            lambda p: (p.expect_from_outputs, p.expect_from_inputs, p.S),
            policy,
            (of_outputs[:length], of_inputs, optimum.S),
        )

    @property
    def length(self) -> int:
        """How many steps it remembers."""
        return self.output_taps.shape[-3]

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.output_taps.shape[-2]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.output_taps.shape[-1]

    def trainable(self) -> Any:
        """The taps; what replaces a lost observation is not a matter of training."""
        return self.only(lambda policy: (policy.output_taps, policy.input_taps))

    def at(self, time: Any) -> LinearStep:  # noqa: ARG002
        """The window as the state of a linear controller: y_{t-1}.., then u_{t-1}..."""
        length, inputs, outputs = self.output_taps.shape
        dtype = self.output_taps.dtype
        past_outputs = length - 1
        Cc = jnp.concatenate([*self.output_taps[1:], *self.input_taps], axis=1)
        Dc = self.output_taps[0]
        shift_outputs = jnp.eye(past_outputs * outputs, k=-outputs, dtype=dtype)
        shift_inputs = jnp.eye(length * inputs, k=-inputs, dtype=dtype)
        Ac = jax.scipy.linalg.block_diag(shift_outputs, shift_inputs)
        Bc = jnp.zeros((len(Ac), outputs), dtype)
        first_input = past_outputs * outputs
        Ac = Ac.at[first_input : first_input + inputs].add(Cc)
        Bc = Bc.at[first_input : first_input + inputs].add(Dc)
        if past_outputs:
            Bc = Bc.at[:outputs].add(jnp.eye(outputs, dtype=dtype))
        return LinearStep(Ac=Ac, Bc=Bc, Cc=Cc, Dc=Dc)

    def init(self, key: PRNGKeyArray) -> Window:  # noqa: ARG002
        """An empty window."""
        return Window(y=jnp.zeros_like(self.output_taps[:, 0]), u=jnp.zeros_like(self.input_taps[:, 0]))

    def step(
        self, memory: Window, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[Window, Float[Array, " input"]]:
        """Slide the window, apply the taps."""
        inputs = jnp.concatenate([u_last[None], memory.u])
        expected = _apply(self.expect_from_outputs, memory.y) + _apply(self.expect_from_inputs, inputs)
        y = complete(y, expected, self.S)
        window = Window(y=jnp.concatenate([y[None], memory.y[:-1]]), u=inputs[:-1])
        return window, _apply(self.output_taps, window.y) + _apply(self.input_taps, window.u)


def _apply(taps: Array, signal: Array) -> Array:
    return jnp.einsum("sij,sj->i", taps, signal)
