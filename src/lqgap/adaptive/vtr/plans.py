"""Which member's controller to act by, given what is still possible.

With E_ij the long-run excess a step of member i's stationary controller on plant j, over the optimum there,

    optimistic   the member of the set U with the smallest J      (the paper)
    minimax      argmin_{i in U} max_{j in U} E_ij                (robust training's idea inside of the loop)
    bayes        argmin_{i in U} sum_j w_j E_ij ,  w the posterior on U

Whichever it is, max_{j in U} E_ij bounds the rate of excess in the long run, of inputs that are not clipped,
with the probability that U holds the truth.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.systems import LQG, Optimum
from lqgap.systems.separation import RUIN, excess_rates


class Plans(eqx.Module):
    """The excess of every member's controller on every member, and J of each."""

    J: Float[Array, " member"]
    excess: Float[Array, "controller plant"]  # of no entries where only J is asked for
    kind: str = eqx.field(static=True)

    def __init__(self, systems: LQG, optima: Optimum, kind: str, *, has_excess: bool):
        self.J, self.kind = optima.J, kind
        self.excess = jnp.asarray(excess_rates(systems, optima)) if has_excess else jnp.zeros((0, 0))

    def choose(
        self, possible: Bool[Array, " member"], log_likelihood: Float[Array, " member"]
    ) -> Int[Array, ""]:
        """The member whose controller to act by."""
        if self.kind == "optimistic":
            return jnp.argmin(jnp.where(possible, self.J, jnp.inf))
        if self.kind == "minimax":
            loss = jnp.max(jnp.where(possible[None, :], self._cost, -jnp.inf), axis=1)
        else:
            loss = self._cost @ jax.nn.softmax(jnp.where(possible, log_likelihood, -jnp.inf))
        return jnp.argmin(jnp.where(possible, loss, jnp.inf))

    def rate(self, chosen: Int[Array, ""], possible: Bool[Array, " member"]) -> Float[Array, ""]:
        """The largest excess a step on a possible member; infinite if one is not stabilised."""
        return jnp.max(jnp.where(possible, self.excess[chosen], 0.0))

    def safest(self) -> int | None:
        """The member whose controller loses least in the worst case; None if each fails to stabilise one."""
        worst = jnp.max(self.excess, axis=1)
        return int(jnp.argmin(worst)) if jnp.any(jnp.isfinite(worst)) else None

    @property
    def _cost(self) -> Float[Array, "controller plant"]:
        """The excess, with a large number for infinity: posterior weights of zero make no nonsense of it."""
        return jnp.minimum(self.excess, RUIN * jnp.max(self.J))
