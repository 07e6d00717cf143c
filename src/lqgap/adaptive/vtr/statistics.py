"""What value-target regression remembers of its samples, at a cost that does not grow with their number.

A sample is the vector f of all members' predictions and the target Y that came true. Two groups are kept:
Z, on which the present set rests, and the new ones since the last switch:

    dist[i, j] = sum (f_i - f_j)^2 ,     loss[i] = sum (f_i - Y)^2        over each group
    score = max_{i, j} dist_new[i, j] / (dist_Z[i, j] + psi)              switch when it reaches one
    estimate = argmin loss_Z ,   set = { i : dist_Z[i, estimate] <= beta }

A weighted sample is one whose f and Y are multiplied by the root of its weight.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Sums(eqx.Module):
    """Distances between members and losses over one group of samples."""

    dist: Float[Array, "member member"]
    loss: Float[Array, " member"]


class Statistics(eqx.Module):
    """The sums of both groups."""

    kept: Sums  # over Z
    new: Sums

    @staticmethod
    def empty(num_members: int) -> "Statistics":
        """Before the first sample."""
        sums = Sums(jnp.zeros((num_members, num_members)), jnp.zeros(num_members))
        return Statistics(kept=sums, new=sums)

    def add(
        self, f: Float[Array, " member"], target: Float[Array, ""], *, weight: Float[Array, ""]
    ) -> "Statistics":
        """With another new sample; one of weight zero changes nothing."""
        sample = Sums(weight * (f[:, None] - f[None, :]) ** 2, weight * (f - target) ** 2)
        return replace(self, new=jax.tree.map(jnp.add, self.new, sample))

    def merge(self) -> "Statistics":
        """After a switch: the new samples join Z."""
        kept = jax.tree.map(jnp.add, self.kept, self.new)
        return Statistics(kept=kept, new=jax.tree.map(jnp.zeros_like, self.new))

    def score(self, *, psi: Float[Array, ""]) -> Float[Array, ""]:
        """The importance score of the new samples."""
        return jnp.max(self.new.dist / (self.kept.dist + psi))

    def estimate(self, among: Bool[Array, " member"]) -> Int[Array, ""]:
        """The member among the given ones with the smallest loss over Z."""
        return jnp.argmin(jnp.where(among, self.kept.loss, jnp.inf))

    def confidence_set(
        self, among: Bool[Array, " member"], *, beta: Float[Array, ""]
    ) -> Bool[Array, " member"]:
        """The given members that predict about what the estimate predicts on Z; the estimate always does."""
        return among & (self.kept.dist[self.estimate(among)] <= beta)
