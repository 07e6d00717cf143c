"""Policies that deviate from what looks best in order to learn.

`RandomProbe` plays random inputs for a while, then hands over. `ProbingBank` is a bank with two small
networks: one leans towards some members, one adds to the input in proportion to how much is unknown:

    v = sum_i softmax(log_prior + log likelihood / temperature + lean(known))_i u_i ,
    u = v + doubt * probe(known, v) ,     known = (posterior, mean and spread of the u_i, y, u_last) ,

with doubt = 1 - sum of squared posterior weights, which vanishes once the posterior has settled. Leaning
breaks ties: where two members want opposite inputs their mean is no input at all, and nothing would ever be
learned. What is known and the doubt come from the posterior at temperature one: a cold bank decides early,
which does not mean that it knows.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_count, read_key, read_positive
from lqgap.errors import InvalidArgumentError
from lqgap.policies.bank import BankMemory, ModelBank
from lqgap.policies.policy import AbstractPolicy, AbstractWrapper, Memory, require_policy


class ProbeMemory(eqx.Module):
    """The memory of the policy that will take over, the time and the key."""

    then: Memory
    time: Int[Array, ""]
    key: PRNGKeyArray


class RandomProbe(AbstractWrapper):
    """Inputs drawn from N(0, scale^2 I) for `steps` steps, then another policy, which has watched."""

    steps: int = eqx.field(static=True)
    then: AbstractPolicy
    scale: Float[Array, ""]

    def __init__(self, steps: IntLike, then: AbstractPolicy, *, scale: FloatLike = 1.0):
        self.steps = read_count("steps", steps, least=0, most=1_000_000)
        self.then = require_policy("then", then)
        self.scale = jnp.asarray(read_positive("scale", scale), dtype=jnp.float64)

    @property
    def inside(self) -> AbstractPolicy:
        """The policy that takes over."""
        return self.then

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


class ProbingBank(AbstractWrapper):
    """A bank with two small networks that may deviate to probe; it starts as the bank alone."""

    bank: ModelBank
    lean: eqx.nn.MLP
    probe: eqx.nn.MLP
    output_scale: Float[Array, " output"]
    input_scale: Float[Array, " input"]

    def __init__(self, bank: ModelBank, *, width: IntLike = 16, key: PRNGKeyArray):
        if not isinstance(bank, ModelBank) or bank.mode != "mixture":
            raise InvalidArgumentError("bank must be a ModelBank with mode 'mixture', from which it deviates")
        self.bank = bank
        members, inputs, outputs = len(bank.A), bank.num_inputs, bank.num_outputs
        width = read_count("width", width, least=1)
        key_lean, key_probe = jax.random.split(read_key(key))
        known = members + 3 * inputs + outputs
        self.lean = _silent_network(known, members, width, key_lean)
        self.probe = _silent_network(known + inputs, inputs, width, key_probe)
        # Typical sizes: of an innovation, and of the input that one innovation calls for.
        S = bank.S[-1]
        gain = bank.K[0] @ bank.L[-1]
        self.output_scale = _root_mean(S)
        self.input_scale = _root_mean(gain @ S @ jnp.swapaxes(gain, 1, 2))

    @property
    def inside(self) -> ModelBank:
        """The bank."""
        return self.bank

    @property
    def needs_smoothing(self) -> bool:
        """Yes: a rollout that does not switch members has no derivative with respect to switching."""
        return True

    def trainable(self) -> Any:
        """What is trainable in the bank, and the networks."""
        return self.only(lambda policy: (policy.bank, policy.lean, policy.probe))

    def init(self, key: PRNGKeyArray) -> BankMemory:
        """Before the first observation."""
        return self.bank.init(key)

    def step(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, " input"]]:
        """The members' inputs, leaning towards some, and a probe."""
        memory, inputs = self.bank.propose(memory, y, u_last)
        weights = jax.nn.softmax(self.bank.log_prior + memory.log_likelihood)
        wanted = inputs / self.input_scale[None, :]
        mean = weights @ wanted
        # The tiny number keeps the derivative of the root finite where all members agree.
        spread = jnp.sqrt(weights @ (wanted - mean[None, :]) ** 2 + 1e-12)
        seen = jnp.where(jnp.isnan(y) | memory.is_lost, 0, y) / self.output_scale
        known = jnp.concatenate([weights, mean, spread, seen, u_last / self.input_scale])
        leaning = jax.nn.softmax(self.bank.log_posterior(memory) + self.lean(known)) @ inputs
        probe = self.probe(jnp.concatenate([known, leaning / self.input_scale]))
        doubt = 1 - weights @ weights
        return memory, leaning + doubt * self.input_scale * probe


def _silent_network(num_in: int, num_out: int, width: int, key: PRNGKeyArray) -> eqx.nn.MLP:
    """One hidden layer, and nothing comes out before it is trained."""
    network = eqx.nn.MLP(num_in, num_out, width, depth=1, activation=jnp.tanh, key=key)
    last = lambda net: (net.layers[-1].weight, net.layers[-1].bias)  # noqa: E731
    return eqx.tree_at(last, network, replace_fn=jnp.zeros_like)


def _root_mean(covariances: Array) -> Array:
    return jnp.sqrt(jnp.mean(jnp.diagonal(covariances, axis1=-2, axis2=-1), axis=0))
