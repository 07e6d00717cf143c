"""Thompson sampling over a class: act by a member drawn by its posterior weight.

    i ~ w(t) ,    u = - K_i xhat^i

anew at every step; or lazily, with s the step of the last draw and T_k the length of the k-th episode, when

    (1/2) sum_i |w_i(t) - w_i(s)| >= 1/2     or     t - s = T_{k-1} + 1

References: Thompson (1933); Ouyang, Gagrani, Jain (2017) for the second rule, without which a bad draw is
kept for long where the weights move slowly.
Guarantee: Bayesian regret of order sqrt(T) up to logarithms; bounded for a finite class that is separated.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.adaptive.over_class.candidates import AbstractClassLearner, Candidates, ClassMemory, weights
from lqgap.arguments import IntLike, read_flag
from lqgap.simulators.finite import Members
from lqgap.systems import LQG

MOVED = 0.5  # total variation that ends an episode


class Episode(eqx.Module):
    """Since the last draw."""

    drawn_by: Float[Array, " member"]  # the weights then
    length: Int[Array, ""]  # so far
    before: Int[Array, ""]  # the length of the one before


class ThompsonSampling(AbstractClassLearner):
    """The controller of a member that is drawn.

    Args:
        lazy: whether to draw anew only when an episode ends.
        horizon: the last step of a task that ends; None for one that goes on.
    """

    candidates: Candidates
    first_alike: Int[Array, " member"]  # of every member the first that is the same plant
    lazy: bool = eqx.field(static=True)

    def __init__(self, members: Members, *, lazy: bool = False, horizon: IntLike | None = None):
        self.candidates, self.lazy = Candidates(members, horizon=horizon), read_flag("lazy", lazy)
        self.first_alike = jnp.asarray(_find_alike(self.members.systems))

    def first(self) -> Episode:
        """An episode that is over."""
        nothing = jnp.zeros(len(self.members), self.candidates.K.dtype)
        return Episode(nothing, jnp.asarray(0), jnp.asarray(-1))

    def choose(self, memory: ClassMemory, key: PRNGKeyArray) -> tuple[Int[Array, ""], Episode]:
        """A member drawn by the weights, where a draw is due."""
        evidence, episode = memory.evidence, memory.rule
        drawn = self.first_alike[jax.random.categorical(key, evidence.log_likelihood)]
        if not self.lazy:
            return drawn, episode
        now = weights(evidence)
        has_moved = 0.5 * jnp.sum(jnp.abs(now - episode.drawn_by)) >= MOVED
        is_due = has_moved | (episode.length >= episode.before + 1)
        fresh = Episode(now, jnp.asarray(1), episode.length)
        older = Episode(episode.drawn_by, episode.length + 1, episode.before)
        chosen = jnp.where(is_due, drawn, memory.acts_on)
        return chosen, jax.tree.map(lambda new, old: jnp.where(is_due, new, old), fresh, older)


def _find_alike(systems: LQG) -> np.ndarray:
    """A draw among members that are the same plant is no switch."""
    rows = np.concatenate(
        [np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(systems)], axis=1
    )
    _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[number.ravel()]
