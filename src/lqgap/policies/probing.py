"""Policies that deviate from what looks best in order to learn.

`RandomProbe` plays random inputs for a while, then hands over. `ProbingBank` is a bank with a small network
that may add to the bank's input, in proportion to how much the members disagree and to how much is unknown:

    u = u_bank + spread * first + doubt * second ,
    (first, second) = network(weights, u_bank, spread, y, u_last)

with spread the posterior standard deviation of the members' inputs and doubt = 1 - sum of squared weights.
Once the posterior has settled both vanish, and the bank is left alone.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.errors import InvalidArgumentError
from lqgap.linalg.arguments import read_count, read_positive
from lqgap.policies.bank import BankMemory, ModelBank
from lqgap.policies.policy import AbstractPolicy, Memory, require_policy


class ProbeMemory(eqx.Module):
    """The memory of the policy that will take over, the time and the key."""

    then: Memory
    time: Int[Array, ""]
    key: PRNGKeyArray


class RandomProbe(AbstractPolicy):
    """Inputs drawn from N(0, scale^2 I) for `steps` steps, then another policy, which has watched."""

    steps: int = eqx.field(static=True)
    then: AbstractPolicy
    scale: Float[Array, ""]

    def __init__(self, steps: Any, then: AbstractPolicy, *, scale: Any = 1.0):
        self.steps = read_count("steps", steps, least=0, most=1_000_000)
        self.then = require_policy("then", then)
        self.scale = jnp.asarray(read_positive("scale", scale), dtype=jnp.float64)

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.then.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.then.num_outputs

    @property
    def horizon(self) -> int | None:
        """That of the policy that takes over."""
        return self.then.horizon

    def trainable(self) -> Any:
        """What is trainable in the policy that takes over."""
        nothing = jax.tree.map(lambda _: False, self)
        return eqx.tree_at(lambda p: p.then, nothing, self.then.trainable())

    def init(self, key: PRNGKeyArray) -> ProbeMemory:
        """Before the first observation."""
        key, key_then = jax.random.split(key)
        return ProbeMemory(then=self.then.init(key_then), time=jnp.asarray(0), key=key)

    def step(
        self, memory: ProbeMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[ProbeMemory, Float[Array, " input"]]:
        """Let the other policy see everything, but act only in its time."""
        then, chosen = self.then.step(memory.then, y, u_last)
        draw = jax.random.normal(jax.random.fold_in(memory.key, memory.time), chosen.shape, chosen.dtype)
        u = jnp.where(memory.time < self.steps, self.scale * draw, chosen)
        return ProbeMemory(then=then, time=memory.time + 1, key=memory.key), u


class ProbingBank(AbstractPolicy):
    """A bank with a small network that may deviate to probe; it starts as the bank alone."""

    bank: ModelBank
    network: eqx.nn.MLP
    output_scale: Float[Array, " output"]

    def __init__(self, bank: ModelBank, *, width: Any = 16, key: PRNGKeyArray):
        if not isinstance(bank, ModelBank) or bank.mode != "mixture":
            raise InvalidArgumentError("bank must be a ModelBank with mode 'mixture', from which it deviates")
        self.bank = bank
        members, inputs, outputs = len(bank.A), bank.num_inputs, bank.num_outputs
        network = eqx.nn.MLP(
            in_size=members + 3 * inputs + outputs,
            out_size=2 * inputs,
            width_size=read_count("width", width, least=1),
            depth=1,
            activation=jnp.tanh,
            key=key,
        )
        last = lambda net: (net.layers[-1].weight, net.layers[-1].bias)  # noqa: E731
        self.network = eqx.tree_at(last, network, replace_fn=jnp.zeros_like)
        variance = jnp.mean(jnp.diagonal(bank.S[-1], axis1=-2, axis2=-1), axis=0)
        self.output_scale = jnp.sqrt(variance)

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.bank.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.bank.num_outputs

    @property
    def horizon(self) -> int | None:
        """That of the bank."""
        return self.bank.horizon

    def trainable(self) -> Any:
        """What is trainable in the bank, and the network."""
        nothing = jax.tree.map(lambda _: False, self)
        network = jax.tree.map(eqx.is_inexact_array, self.network)
        return eqx.tree_at(lambda p: (p.bank, p.network), nothing, (self.bank.trainable(), network))

    def init(self, key: PRNGKeyArray) -> BankMemory:
        """Before the first observation."""
        return self.bank.init(key)

    def step(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, " input"]]:
        """The bank's input and a deviation."""
        memory, inputs = self.bank.propose(memory, y, u_last)
        weights = self.bank.weights(memory)
        mean = weights @ inputs
        # The tiny number keeps the derivative of the root finite where all members agree.
        spread = jnp.sqrt(weights @ (inputs - mean[None, :]) ** 2 + 1e-12)
        doubt = 1 - weights @ weights
        scaled = jnp.where(jnp.isnan(y), 0, y) / self.output_scale
        first, second = jnp.split(self.network(jnp.concatenate([weights, mean, spread, scaled, u_last])), 2)
        return memory, mean + spread * first + doubt * second
