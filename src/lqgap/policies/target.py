"""What a member's controller steers to: the origin, or where its plant rests at a reference.

    u = u_r - K (xhat - x_r)

with the rest (x_r, u_r) of the member itself (`systems.setpoints`). Filters stay in absolute coordinates, so
that a step of the reference is no surprise to any of them.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.systems.setpoints import Rest


class AbstractTarget(eqx.Module):
    """Where to steer to."""

    @abc.abstractmethod
    def steer(self, K: Float[Array, "input state"], xhat: Float[Array, " state"]) -> Float[Array, " input"]:
        """The input."""


class Origin(AbstractTarget):
    """No reference."""

    def steer(self, K: Array, xhat: Array) -> Array:
        """-K xhat."""
        return -K @ xhat


class Target(AbstractTarget):
    """A rest."""

    x: Float[Array, "*member state"]
    u: Float[Array, "*member input"]

    def steer(self, K: Array, xhat: Array) -> Array:
        """u_r - K (xhat - x_r)."""
        return self.u - K @ (xhat - self.x)


def aim(memory: Any, rest: Rest, reference: Float[Array | np.ndarray, " followed"]) -> Any:
    """The memory of a policy that steers to a reference from now on."""
    target = Target(x=jnp.asarray(rest.x @ reference), u=jnp.asarray(rest.u @ reference))
    is_target = lambda part: isinstance(part, AbstractTarget)  # noqa: E731
    return jax.tree.map(lambda part: target if is_target(part) else part, memory, is_leaf=is_target)
