"""Random inputs for a while, then a policy that has watched."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_count, read_positive
from lqgap.policies.policy import AbstractPolicy, AbstractWrapper, Memory


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
        self.then = then
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
