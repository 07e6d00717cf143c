"""From changes of the input to the input: policies for plants in velocity form, and the plants themselves.

    u_t = u_{t-1} + du_t ,      and the policy inside is told u_{t-1} - u_{t-2} ,

both with the inputs really applied. Where an actuator stops at its limit, the sum stops there too, and
filters know it: nothing winds up. `Integrated` acts on the plant, `BoundedChanges` on its velocity form.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import read_indices
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.policies.policy import AbstractPolicy, AbstractWrapper, Memory


class IntegratedMemory(eqx.Module):
    """That of the policy inside, and the input of the step before the last."""

    inside: Memory
    u_before: Float[Array, " input"]


class ChangesMemory(eqx.Module):
    """That of the policy inside, and the sum of all changes that were applied."""

    inside: Memory
    total: Float[Array, " input"]


class BoundedChanges(AbstractWrapper):
    """A policy in changes whose sum stays within limits; it can be evaluated on plants in velocity form.

    Args:
        limits: of the sum, (low, high) or (low, high, rate), numbers or vectors.
    """

    parts = (Limits,)

    policy: AbstractPolicy
    limits: Limits

    def __init__(self, policy: AbstractPolicy, limits: LimitsLike):
        self.policy = policy
        self.limits = read_limits(limits, num_inputs=policy.num_inputs)

    @property
    def inside(self) -> AbstractPolicy:
        """The policy without limits."""
        return self.policy

    def init(self, key: PRNGKeyArray) -> ChangesMemory:
        """Before the first observation."""
        return ChangesMemory(self.policy.init(key), _nothing(self.policy))

    def step(
        self, memory: ChangesMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[ChangesMemory, Float[Array, " input"]]:
        """What is left of the change that the policy asks for."""
        total = memory.total.astype(u_last.dtype) + u_last
        inside, chosen = self.policy.step(memory.inside, y, u_last)
        return ChangesMemory(inside, total), self.limits.clip(total + chosen, total) - total


class Integrated(AbstractWrapper):
    """A policy whose inputs are changes, as a policy of the plant (`lqgap.offset_free`).

    Args:
        inputs: numbers of those that are changes, as given to `offset_free`; all if left out.
    """

    policy: AbstractPolicy
    is_change: tuple[bool, ...] = eqx.field(static=True)

    def __init__(self, policy: AbstractPolicy, *, inputs: Sequence[int] | None = None):
        self.policy = policy
        count = policy.num_inputs
        chosen = range(count) if inputs is None else read_indices("inputs", inputs, below=count)
        self.is_change = tuple(index in chosen for index in range(count))

    @property
    def inside(self) -> AbstractPolicy:
        """The policy in changes."""
        return self.policy

    def init(self, key: PRNGKeyArray) -> IntegratedMemory:
        """Before the first observation."""
        return IntegratedMemory(self.policy.init(key), _nothing(self.policy))

    def step(
        self, memory: IntegratedMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[IntegratedMemory, Float[Array, " input"]]:
        """Tell the policy what changed, and add the change it chooses."""
        is_change = np.asarray(self.is_change)
        before = jnp.where(is_change, memory.u_before, 0).astype(u_last.dtype)
        inside, chosen = self.policy.step(memory.inside, y, u_last - before)
        return IntegratedMemory(inside, u_last), jnp.where(is_change, u_last, 0) + chosen


def _nothing(policy: AbstractPolicy) -> Float[Array, " input"]:
    """No input, in the precision of the policy: a memory keeps its type."""
    numbers = [leaf.dtype for leaf in jax.tree.leaves(policy) if eqx.is_inexact_array(leaf)]
    return jnp.zeros(policy.num_inputs, jnp.result_type(*numbers) if numbers else float)
