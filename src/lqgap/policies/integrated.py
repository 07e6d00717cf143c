"""From changes of the input to the input: a policy for plants in velocity form, on the plant itself.

    u_t = u_{t-1} + du_t ,      and the policy inside is told u_{t-1} - u_{t-2} ,

both with the inputs really applied. Where an actuator stops at its limit, the sum stops there too, and
filters know it: nothing winds up.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.policies.policy import AbstractPolicy, AbstractWrapper, Memory, require_policy


class IntegratedMemory(eqx.Module):
    """That of the policy inside, and the input of the step before the last."""

    inside: Memory
    u_before: Float[Array, " input"]


class Integrated(AbstractWrapper):
    """A policy whose inputs are changes, as a policy of the plant (`lqgap.offset_free`).

    Args:
        inputs: numbers of those that are changes, as given to `offset_free`; all if left out.
    """

    policy: AbstractPolicy
    is_change: tuple[bool, ...] = eqx.field(static=True)

    def __init__(self, policy: AbstractPolicy, *, inputs: Sequence[int] | None = None):
        self.policy = require_policy("policy", policy)
        count = policy.num_inputs
        self.is_change = tuple(inputs is None or index in inputs for index in range(count))

    @property
    def inside(self) -> AbstractPolicy:
        """The policy in changes."""
        return self.policy

    def init(self, key: PRNGKeyArray) -> IntegratedMemory:
        """Before the first observation."""
        return IntegratedMemory(self.policy.init(key), jnp.zeros(self.num_inputs))

    def step(
        self, memory: IntegratedMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[IntegratedMemory, Float[Array, " input"]]:
        """Tell the policy what changed, and add the change it chooses."""
        is_change = np.asarray(self.is_change)
        before = jnp.where(is_change, memory.u_before, 0).astype(u_last.dtype)
        inside, chosen = self.policy.step(memory.inside, y, u_last - before)
        return IntegratedMemory(inside, u_last), jnp.where(is_change, u_last, 0) + chosen
