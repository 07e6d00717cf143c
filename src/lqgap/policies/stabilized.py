"""An inner loop that keeps the plant stable, and an outer policy on top: u = inner(y) + outer(y).

Stabilising is a policy, not a change of the plant: the plant, its optimum and the gap stay those of the total
input, which is what both parts see as `u_last`.
"""

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.errors import InvalidArgumentError
from lqgap.policies.linear import LinearDynamic, LinearMemory
from lqgap.policies.policy import AbstractPolicy, AbstractWrapper, Memory, require_policy


class StabilizedMemory(eqx.Module):
    """The memories of both parts."""

    inner: LinearMemory
    outer: Memory


class Stabilized(AbstractWrapper):
    """The sum of a linear inner loop (`lqgap.find_stabilizer` searches one) and an outer policy.

    Only the outer policy is trained. It should be one that does not stabilise by itself, as `RandomProbe` and
    `Recurrent` do not: the sum of two controllers may be worse than either, and a `ModelBank` needs no other.
    """

    inner: LinearDynamic
    outer: AbstractPolicy

    def __init__(self, inner: LinearDynamic, outer: AbstractPolicy):
        if not isinstance(inner, LinearDynamic):
            raise InvalidArgumentError(f"inner is a {type(inner).__name__}, expected a LinearDynamic policy")
        self.inner, self.outer = inner, require_policy("outer", outer)
        sizes = [(policy.num_inputs, policy.num_outputs) for policy in (inner, outer)]
        if sizes[0] != sizes[1]:
            raise InvalidArgumentError(
                f"inner and outer differ in (inputs, outputs): {sizes[0]} and {sizes[1]}"
            )

    @property
    def inside(self) -> AbstractPolicy:
        """The outer policy."""
        return self.outer

    def init(self, key: PRNGKeyArray) -> StabilizedMemory:
        """Both parts at their start."""
        return StabilizedMemory(inner=self.inner.init(key), outer=self.outer.init(key))

    def step(
        self, memory: StabilizedMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[StabilizedMemory, Float[Array, " input"]]:
        """The sum of both inputs."""
        inner, stabilising = self.inner.step(memory.inner, y, u_last)
        outer, added = self.outer.step(memory.outer, y, u_last)
        return StabilizedMemory(inner, outer), stabilising + added
