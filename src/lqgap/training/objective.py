"""The gaps of a policy on all members, as a function that can be differentiated.

Linear policies have exact gaps (see `evaluation.exact`); for all others the gap identity is averaged over
rollouts, through which derivatives pass. A mixture's gap is the weighted sum of its components' gaps, so
that its weights have derivatives too.

Gaps have long tails, and loops that adapt amplify small changes. Two measures keep derivatives useful
without changing the gaps themselves: a rollout whose excess is more than a few times the mean has its
derivative shortened in proportion, and back-propagation through time is truncated softly: from a step to the
one before it a derivative passes only in part (`backprop_decay`).
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.evaluation.arguments import cast
from lqgap.evaluation.exact import exact_gap
from lqgap.evaluation.gap import references_of
from lqgap.evaluation.monte_carlo import draw_normals, rollout_keys
from lqgap.evaluation.reference import Reference, begin, excess
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy
from lqgap.policies.limits import Limits
from lqgap.systems import LQG
from lqgap.systems.natural import naturalize

TAIL = 3.0  # times the mean excess: derivatives of rollouts beyond it are shortened


class AbstractObjective(eqx.Module):
    """Gaps of a policy on every member of a class."""

    @abc.abstractmethod
    def gaps(self, policy: AbstractPolicy, key: Array, num_rollouts: int) -> Float[Array, " member"]:
        """The gaps of a policy."""

    def with_step_scale(self, step_scale: Float[Array, ""]) -> "AbstractObjective":  # noqa: ARG002
        """The same gaps, with derivatives fit for steps of this scale."""
        return self


class ExactObjective(AbstractObjective):
    """For linear policies: no chance."""

    systems: LQG
    horizon: int = eqx.field(static=True)
    ends: bool = eqx.field(static=True, default=True)

    def gaps(
        self,
        policy: AbstractPolicy,
        key: Array,  # noqa: ARG002
        num_rollouts: int,  # noqa: ARG002
    ) -> Float[Array, " member"]:
        """The exact gaps."""
        linear: Any = policy
        return jax.vmap(lambda plant: exact_gap(linear, plant, horizon=self.horizon, ends=self.ends))(
            self.systems
        )


class SampledObjective(AbstractObjective):
    """For any policy: averages over rollouts, with the same noise for all members."""

    references: Reference
    limits: Limits
    backprop_decay: Float[Array, ""]

    def gaps(self, policy: AbstractPolicy, key: Array, num_rollouts: int) -> Float[Array, " member"]:
        """Average excess over rollouts."""
        numbers = jnp.arange(num_rollouts)
        totals = self.totals(lambda _: policy, numbers, rollout_keys(key, numbers))
        return jnp.mean(jax.vmap(shorten_tail)(totals), axis=1)

    def with_step_scale(self, step_scale: Float[Array, ""]) -> "SampledObjective":
        """Small steps can afford derivatives that reach farther back."""
        decay = 1 - (1 - self.backprop_decay) * jnp.sqrt(step_scale)
        return SampledObjective(self.references, self.limits, decay)

    def totals(
        self, policy_from: Callable[[Any], AbstractPolicy], given: Any, keys: tuple[Array, Array]
    ) -> Float[Array, "member rollout"]:
        """The excess of every rollout, with the policy made from what is given for this rollout."""
        keys_noise, keys_policy = keys
        num_steps = self.references.K.shape[1]
        normals = draw_normals(keys_noise, num_steps=num_steps, like=self.references)

        def of_pair(reference: Reference, own: Any, normal: Array, key: Array) -> Array:
            policy = policy_from(own)
            start = begin(policy, reference, key)
            run = excess(policy, reference, normal, start, self.limits, backprop_decay=self.backprop_decay)
            return jnp.sum(run.per_step)

        of_member = jax.vmap(of_pair, in_axes=(None, 0, 0, 0))
        return jax.vmap(of_member, in_axes=(0, None, None, None))(
            self.references, given, normals, keys_policy
        )


def make_objective(
    policy: AbstractPolicy,
    systems: LQG,
    limits: Limits,
    *,
    horizon: int,
    dtype: type,
    backprop_decay: float,
    ends: bool = True,
) -> AbstractObjective:
    """The exact objective where there is one."""
    if limits.is_free and isinstance(policy, AbstractLinearPolicy):
        return ExactObjective(systems, horizon, ends)
    # In natural coordinates single precision loses nothing to units.
    references = references_of(naturalize(systems), horizon=horizon, ends=ends)
    return cast(SampledObjective(references, limits, jnp.asarray(backprop_decay)), dtype)


def is_exact(objective: AbstractObjective) -> bool:
    """Whether chance plays no part."""
    return isinstance(objective, ExactObjective)


def shorten_tail(totals: Float[Array, " rollout"]) -> Float[Array, " rollout"]:
    """The same numbers; beyond a few times their mean, with derivatives shortened in proportion."""
    bound = TAIL * jnp.mean(totals)
    share = jax.lax.stop_gradient(jnp.minimum(1.0, bound / jnp.maximum(totals, 1e-30)))
    return share * totals + jax.lax.stop_gradient((1 - share) * totals)


def count_members(objective: AbstractObjective) -> int:
    """How many members an objective is about."""
    return len(_members(objective).A)


def split(objective: AbstractObjective, num_parts: int) -> AbstractObjective:
    """Objectives of parts of the members, as many in each, with a leading axis."""
    parts = jax.tree.map(lambda leaf: leaf.reshape(num_parts, -1, *leaf.shape[1:]), _members(objective))
    each = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_parts, *leaf.shape)), objective)
    return eqx.tree_at(_members, each, parts)


def _members(objective: Any) -> Any:
    return objective.systems if isinstance(objective, ExactObjective) else objective.references
