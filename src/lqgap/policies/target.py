"""What a member's controller steers to: the origin, or where its plant rests at a reference.

    u = u_r - K (xhat - x_r)

with the rest (x_r, u_r) of the member itself, which moves to another one at the member's own pace
(`systems.setpoints`). Filters stay in absolute coordinates, so that a step of the reference is no surprise to
any of them.
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
    def move(self) -> "AbstractTarget":
        """Where to steer to one step later."""

    @abc.abstractmethod
    def error(self, xhat: Float[Array, "*member state"]) -> Float[Array, "*member state"]:
        """xhat - x_r: how far the belief is from where to steer to."""

    @abc.abstractmethod
    def feed(self, correction: Float[Array, "*member input"]) -> Float[Array, "*member input"]:
        """u_r less a correction, K times the error."""

    def steer(self, K: Float[Array, "input state"], xhat: Float[Array, " state"]) -> Float[Array, " input"]:
        """The input u_r - K (xhat - x_r)."""
        return self.feed(K @ self.error(xhat))


class Origin(AbstractTarget):
    """No reference."""

    def move(self) -> "Origin":
        """It stays."""
        return self

    def error(self, xhat: Array) -> Array:
        """xhat: the origin is zero."""
        return xhat

    def feed(self, correction: Array) -> Array:
        """The correction alone, against the error."""
        return -correction


class Target(AbstractTarget):
    """A rest on its way to another one."""

    x: Float[Array, "*member state"]
    u: Float[Array, "*member input"]
    x_goal: Float[Array, "*member state"]
    u_goal: Float[Array, "*member input"]
    pace: Float[Array, "*member"]

    def move(self) -> "Target":
        """Nearer to the goal."""
        left = self.pace[..., None]
        x, u = self.x_goal + left * (self.x - self.x_goal), self.u_goal + left * (self.u - self.u_goal)
        return Target(x, u, self.x_goal, self.u_goal, self.pace)

    def error(self, xhat: Array) -> Array:
        """xhat - x_r."""
        return xhat - self.x

    def feed(self, correction: Array) -> Array:
        """u_r less the correction."""
        return self.u - correction


def aim(memory: Any, rest: Rest, reference: Float[Array | np.ndarray, " followed"]) -> Any:
    """The memory of a policy that goes to a reference from now on, from where it steered to before."""
    x, u, pace = (jnp.asarray(part) for part in (rest.x @ reference, rest.u @ reference, rest.pace))

    def turn(part: Any) -> Any:
        if not isinstance(part, AbstractTarget):
            return part
        now = (part.x, part.u) if isinstance(part, Target) else (jnp.zeros_like(x), jnp.zeros_like(u))
        return Target(*now, x, u, pace)

    return jax.tree.map(turn, memory, is_leaf=lambda part: isinstance(part, AbstractTarget))
