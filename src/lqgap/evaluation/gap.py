"""The sim-to-real gap of any policy on every member of a class, by the identity of `reference`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_count, read_key, read_positive
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, read_systems
from lqgap.evaluation.estimate import AbstractEstimate, have_light_tails
from lqgap.evaluation.monte_carlo import MAX_ROLLOUTS, block_size, draw_normals, rollout_keys, sum_rollouts
from lqgap.evaluation.reference import Reference, excess, reference_of
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.simulators.finite import Members
from lqgap.systems import LQG
from lqgap.systems.natural import naturalize

MAX_TERMS = 100_000_000  # of members, steps and squared states
PILOT = 128


class GapEstimate(AbstractEstimate):
    """V^pi - V* of every member, as far as rollouts tell.

    All members meet the same noise, so that their differences are known better than each gap.
    """

    mean: Float[np.ndarray, " member"]
    stderr: Float[np.ndarray, " member"]
    totals: Float[np.ndarray, "member rollout"]
    per_step: Float[np.ndarray, "member time"]
    value: Float[np.ndarray, " member"]  # V*: what the best policy for that member costs
    num_rollouts: int = eqx.field(static=True)
    has_light_tail: bool = eqx.field(static=True)


def gap(  # noqa: PLR0913
    policy: AbstractPolicy,
    members: Members,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    num_rollouts: IntLike = 256,
    target_stderr: FloatLike | None = None,
    limits: LimitsLike = None,
    precision: str = "float64",
    ends: bool = True,
) -> GapEstimate:
    """Estimate the gap over steps 0..horizon; where a policy destabilises a member it may be infinite.

    Args:
        members: a finite class, a batched LQG, or one LQG.
        num_rollouts: how many for each member; with `target_stderr`, the least number (128 or more).
        target_stderr: go on until no finite gap has a larger standard error, or ten million rollouts are run.
        limits: (low, high), numbers or vectors: plants receive inputs clipped to them.
        precision: "float64" or "float32"; sums are in double precision either way.
        ends: whether the task ends at the horizon; if not, the state left then counts (see `reference`).
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    systems = read_systems(policy, members)
    least = read_count("num_rollouts", num_rollouts, least=2, most=MAX_ROLLOUTS)
    target = np.inf if target_stderr is None else read_positive("target_stderr", target_stderr)
    # A rule that looks at few rollouts stops when they happen to agree.
    least = least if target == np.inf else max(least, PILOT)
    dtype = read_precision(precision)
    allowed = read_limits(limits, num_inputs=policy.num_inputs)
    references = references_of(naturalize(systems), horizon=horizon, ends=ends)
    return estimate_gap(policy, references, allowed, key=key, num_rollouts=least, target=target, dtype=dtype)


def estimate_gap(
    policy: AbstractPolicy,
    references: Reference,
    limits: Limits,
    *,
    key: PRNGKeyArray,
    num_rollouts: int,
    target: float = np.inf,
    dtype: Any = jnp.float64,
) -> GapEstimate:
    """The gap against the references of all members, from arguments that have been read."""
    value = np.asarray(references.value)
    num_members, num_steps, num_outputs = len(value), references.K.shape[1], references.C.shape[-2]
    policy, references, limits = cast((policy, references, limits), dtype)
    sums = sum_rollouts(
        lambda indices, is_counted: _block(policy, references, limits, key, indices, is_counted),
        label="gap",
        block=block_size(num_members, num_steps, num_outputs, num_rollouts),
        num_rollouts=num_rollouts,
        target=target,
    )
    return GapEstimate(
        mean=sums.mean,
        stderr=sums.stderr,
        totals=sums.totals,
        per_step=sums.parts[2] / sums.count,
        value=value,
        num_rollouts=sums.count,
        has_light_tail=have_light_tails(sums.totals),
    )


def references_of(systems: LQG, *, horizon: int, ends: bool = True) -> Reference:
    """The references of all members; raises where a member's optimal cost leaves double precision."""
    size = len(systems.A) * (horizon + 1) * systems.num_states**2
    if size > MAX_TERMS:
        raise InvalidArgumentError(
            f"{len(systems.A)} members over {horizon + 1} steps do not fit into memory: take a subset of the "
            f"members at a time, or a shorter horizon"
        )
    references = _references_of(systems, horizon, ends)
    finite = np.isfinite(np.asarray(references.value))
    if not np.all(finite):
        raise NotConvergedError(
            f"member {int(np.argmin(finite))} has no optimal cost over steps 0..{horizon} in double "
            f"precision: an unstable mode is not detectable or not stabilisable (see lqgap.check_assumptions)"
        )
    return references


def have_optimum(systems: LQG, *, horizon: int, ends: bool = True) -> np.ndarray:
    """Which plants of a batch have an optimal cost."""
    return np.isfinite(np.asarray(_references_of(systems, horizon, ends).value))


@eqx.filter_jit
def _references_of(systems: LQG, horizon: int, ends: bool) -> Reference:
    return jax.vmap(lambda plant: reference_of(plant, horizon=horizon, ends=ends))(systems)


@eqx.filter_jit
def _block(
    policy: AbstractPolicy,
    references: Reference,
    limits: Limits,
    key: Array,
    indices: Array,
    is_counted: Array,
) -> tuple[Array, ...]:
    """The totals of all members and rollouts, and sums of the terms of every step."""
    keys_noise, keys_policy = rollout_keys(key, indices)
    normals = draw_normals(keys_noise, num_steps=references.K.shape[1], like=references)

    def of_member(reference: Reference) -> Array:
        return jax.vmap(lambda normal, k: excess(policy, reference, normal, k, limits).per_step)(
            normals, keys_policy
        )

    terms = jax.vmap(of_member)(references).astype(jnp.float64)
    terms = jnp.where(jnp.isnan(terms), jnp.inf, terms)
    terms = jnp.where(is_counted[None, :, None], terms, 0)
    return jnp.sum(terms, axis=2), jnp.sum(terms, axis=1)
