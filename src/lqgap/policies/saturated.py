"""A policy that asks for no more than the actuator can do, and so can be evaluated and deployed as it is."""

from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.policies.policy import AbstractPolicy, AbstractWrapper, Memory


class Saturated(AbstractWrapper):
    """Another policy within limits; since it is told what was applied, nothing winds up.

    Args:
        limits: (low, high) or (low, high, rate), numbers or vectors; a rate is the largest change in a step.
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

    def init(self, key: PRNGKeyArray) -> Memory:
        """Before the first observation."""
        return self.policy.init(key)

    def step(
        self, memory: Memory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[Memory, Float[Array, " input"]]:
        """What the actuator makes of the input that the policy asks for."""
        memory, u = self.policy.step(memory, y, u_last)
        return memory, self.limits.clip(u, u_last)
