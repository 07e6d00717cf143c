"""What value-target regression remembers of its samples, at a cost that does not grow with their number.

A sample is the vector f of all members' predictions and the target Y that came true. Two groups are kept:
Z, on which the present set rests, and the new ones since the last switch:

    dist[i, j] = sum (f_i - f_j)^2 ,     loss[i] = sum (f_i - Y)^2        over each group
    score = max_{i, j} dist_new[i, j] / (dist_Z[i, j] + psi)              switch when it reaches one
    estimate = argmin loss_Z ,   set = { i : dist_Z[i, estimate] <= beta }

With r = max f - min f the score grows by at most r^2 / (psi + min dist_Z) a step. `budget` is what is left of
one after subtracting that; until it is used up the score is below one, and samples wait in a buffer instead
of being added to N^2 sums: the trigger fires at exactly the same steps.

A weighted sample is one whose f and Y are multiplied by the root of its weight. Where the truth lies between
the members, and the nearest one predicts up to `resolution` differently in the root mean square, the radius
grows with the samples: beta becomes (beta^1/2 + resolution (sum of weights)^1/2)^2.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Sums(eqx.Module):
    """Distances between members and losses over one group of samples."""

    dist: Float[Array, "member member"]
    loss: Float[Array, " member"]
    weight: Float[Array, ""]  # of all samples together: their number, if all weigh one

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.dist + other.dist, self.loss + other.loss, self.weight + other.weight)


class Statistics(eqx.Module):
    """The sums of both groups, the samples that wait, and how far the score certainly is from one."""

    kept: Sums  # over Z
    new: Sums  # without those that wait
    waiting: Float[Array, "wait member"]
    targets: Float[Array, " wait"]
    weights: Float[Array, " wait"]
    num_waiting: Int[Array, ""]
    budget: Float[Array, ""]


def no_samples(num_members: int, *, num_waiting: int) -> Statistics:
    """Before the first sample; as many may wait as given, none if the score is wanted at every step."""
    sums = Sums(jnp.zeros((num_members, num_members)), jnp.zeros(num_members), jnp.asarray(0.0))
    return Statistics(
        kept=sums,
        new=sums,
        waiting=jnp.zeros((max(num_waiting, 1), num_members)),
        targets=jnp.zeros(max(num_waiting, 1)),
        weights=jnp.zeros(max(num_waiting, 1)),
        num_waiting=jnp.asarray(0),
        budget=jnp.asarray(1.0 if num_waiting else -jnp.inf),
    )


def add_sample(
    statistics: Statistics,
    f: Float[Array, " member"],
    target: Float[Array, ""],
    *,
    psi: Float[Array, ""],
    weight: Float[Array, ""] | None = None,
) -> tuple[Statistics, Bool[Array, ""]]:
    """The statistics with one sample more, and whether the score has reached one."""
    weight = jnp.ones_like(target) if weight is None else weight
    f, target = jnp.sqrt(weight) * f, jnp.sqrt(weight) * target
    now = statistics.num_waiting
    least = psi + jnp.min(_apart(statistics.kept.dist))
    statistics = eqx.tree_at(
        lambda s: (s.waiting, s.targets, s.weights, s.num_waiting, s.budget),
        statistics,
        (
            statistics.waiting.at[now].set(f),
            statistics.targets.at[now].set(target),
            statistics.weights.at[now].set(weight),
            now + 1,
            statistics.budget - (jnp.max(f) - jnp.min(f)) ** 2 / least,
        ),
    )
    is_full = statistics.num_waiting == len(statistics.waiting)
    return jax.lax.cond(is_full | (statistics.budget <= 0), _look, _wait, statistics, psi)


def merge(statistics: Statistics) -> Statistics:
    """After a switch: the new samples join Z. None may be waiting."""
    none = jax.tree.map(jnp.zeros_like, statistics.new)
    is_lazy = jnp.isfinite(statistics.budget)
    return eqx.tree_at(
        lambda s: (s.kept, s.new, s.budget),
        statistics,
        (statistics.kept + statistics.new, none, jnp.where(is_lazy, 1.0, statistics.budget)),
    )


def score(statistics: Statistics, *, psi: Float[Array, ""]) -> Float[Array, ""]:
    """The importance score of the new samples, without those that wait."""
    return jnp.max(statistics.new.dist / (statistics.kept.dist + psi))


def estimate(statistics: Statistics, among: Bool[Array, " member"]) -> Int[Array, ""]:
    """The member among the given ones with the smallest loss over Z."""
    return jnp.argmin(jnp.where(among, statistics.kept.loss, jnp.inf))


def confidence_set(
    statistics: Statistics,
    among: Bool[Array, " member"],
    *,
    beta: Float[Array, ""],
    resolution: Float[Array, ""] | None = None,
) -> Bool[Array, " member"]:
    """The given members that predict about what the estimate predicts on Z; the estimate always does."""
    if resolution is not None:
        beta = (jnp.sqrt(beta) + resolution * jnp.sqrt(statistics.kept.weight)) ** 2
    return among & (statistics.kept.dist[estimate(statistics, among)] <= beta)


def _look(statistics: Statistics, psi: Float[Array, ""]) -> tuple[Statistics, Bool[Array, ""]]:
    """Add up what waits, and take the exact score."""
    is_there = jnp.arange(len(statistics.waiting)) < statistics.num_waiting
    f = jnp.where(is_there[:, None], statistics.waiting, 0.0)
    # Relative to one member: differences are what counts, and large common parts would cost their digits.
    relative = f - f[:, :1]
    gram = relative.T @ relative
    squares = jnp.diagonal(gram)
    dist = jnp.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0)
    loss = jnp.sum(jnp.where(is_there[:, None], (f - statistics.targets[:, None]) ** 2, 0.0), axis=0)
    added = Sums(dist, loss, jnp.sum(jnp.where(is_there, statistics.weights, 0.0)))
    statistics = eqx.tree_at(
        lambda s: (s.new, s.num_waiting), statistics, (statistics.new + added, jnp.asarray(0))
    )
    now = score(statistics, psi=psi)
    budget = jnp.where(jnp.isfinite(statistics.budget), 1 - now, statistics.budget)
    return eqx.tree_at(lambda s: s.budget, statistics, budget), now >= 1


def _wait(statistics: Statistics, psi: Float[Array, ""]) -> tuple[Statistics, Bool[Array, ""]]:  # noqa: ARG001
    return statistics, jnp.asarray(False)


def _apart(dist: Array) -> Any:
    """Distances of different members; the diagonal is not one."""
    return jnp.where(jnp.eye(len(dist), dtype=bool), jnp.inf, dist)
