"""A recurrent network: what deep reinforcement learning would train."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import ArrayLike, IntLike, read_count, read_key, read_vector
from lqgap.policies.policy import AbstractPolicy


class Recurrent(AbstractPolicy):
    """A gated recurrent unit from (y, u_last) to u; before training its input is zero.

    Args:
        output_scale: typical size of each observation, which is divided by it; one if left out.
        input_scale: typical size of each input.
    """

    cell: eqx.nn.GRUCell
    readout: eqx.nn.Linear
    output_scale: Float[Array, " output"]
    input_scale: Float[Array, " input"]

    def __init__(
        self,
        *,
        num_inputs: IntLike,
        num_outputs: IntLike,
        width: IntLike = 32,
        output_scale: ArrayLike | None = None,
        input_scale: ArrayLike | None = None,
        key: PRNGKeyArray,
    ):
        inputs = read_count("num_inputs", num_inputs, least=1)
        outputs = read_count("num_outputs", num_outputs, least=1)
        width = read_count("width", width, least=1)
        key_cell, key_readout = jax.random.split(read_key(key))
        self.cell = eqx.nn.GRUCell(inputs + outputs, width, key=key_cell)
        readout = eqx.nn.Linear(width, inputs, use_bias=False, key=key_readout)
        self.readout = eqx.tree_at(lambda layer: layer.weight, readout, replace_fn=jnp.zeros_like)
        self.output_scale, self.input_scale = (
            jnp.ones(size) if scale is None else read_vector(name, scale, size=size, why="one for each")
            for name, scale, size in (
                ("output_scale", output_scale, outputs),
                ("input_scale", input_scale, inputs),
            )
        )

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.input_scale.shape[-1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.output_scale.shape[-1]

    def trainable(self) -> Any:
        """The network; the scales are units."""
        return self.only(lambda policy: (policy.cell, policy.readout))

    def init(self, key: PRNGKeyArray) -> Float[Array, " width"]:  # noqa: ARG002
        """The network at rest."""
        return jnp.zeros_like(self.readout.weight[0])

    def step(
        self, memory: Float[Array, " width"], y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[Float[Array, " width"], Float[Array, " input"]]:
        """One step of the network; a lost observation counts as zero, its mean."""
        seen = jnp.where(jnp.isnan(y), 0, y) / self.output_scale
        memory = self.cell(jnp.concatenate([seen, u_last / self.input_scale]), memory)
        return memory, self.input_scale * self.readout(memory)
