"""The sim-to-real gap of any policy on every member of a class, by the identity of `reference`."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_count, read_key, read_positive
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, read_systems
from lqgap.evaluation.estimate import AbstractEstimate, have_light_tails
from lqgap.evaluation.monte_carlo import MAX_ROLLOUTS, block_size, draw_normals, rollout_keys, sum_rollouts
from lqgap.evaluation.reference import Reference, RolloutState, begin, excess, make_reference
from lqgap.linalg import RiccatiSolution
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.simulators.finite import Members
from lqgap.systems import LQG
from lqgap.systems.finite_horizon import plan_finite
from lqgap.systems.natural import naturalize
from lqgap.systems.optimum import solve_control

MAX_TERMS = 100_000_000  # of members, steps and squared states
FEW_TERMS, TOGETHER = 1_000_000, 32  # so few are computed for a multiple of so many members
PILOT = 128
MARKS = 8  # last steps that rollouts are summed up to, or a multiple of it


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
    last = [references.K.shape[1] - 1]
    return estimate_gaps(
        policy, references, limits, last, key=key, num_rollouts=num_rollouts, target=target, dtype=dtype
    )[0]


def estimate_gaps(
    policy: AbstractPolicy,
    references: Reference,
    limits: Limits,
    last_steps: Sequence[int],
    *,
    key: PRNGKeyArray,
    num_rollouts: int,
    target: float = np.inf,
    dtype: Any = jnp.float64,
) -> list[GapEstimate]:
    """The gaps up to each of the last steps, from the same rollouts; V* is that of the whole horizon."""
    value = np.asarray(references.value)
    num_members, num_steps, num_outputs = len(value), references.K.shape[1], references.C.shape[-2]
    policy, references, limits = cast((policy, references, limits), dtype)

    marks = pad_marks(last_steps)

    def block_fn(indices: Array, is_counted: Array) -> tuple[Any, Any]:
        states = begin_block(policy, references, key, indices)
        block = run_block(policy, references, limits, key, indices, is_counted, marks, states)
        return np.asarray(block.totals)[: len(last_steps)].reshape(-1, len(indices)), block.per_step

    sums = sum_rollouts(
        block_fn,
        label="gap",
        block=block_size(num_members, num_steps, num_outputs, num_rollouts),
        num_rollouts=num_rollouts,
        target=target,
    )
    per_step = sums.parts[2] / sums.count
    return [
        GapEstimate(
            mean=sums.mean[rows],
            stderr=sums.stderr[rows],
            totals=sums.totals[rows],
            per_step=np.where(np.arange(num_steps) <= last, per_step, 0),
            value=value,
            num_rollouts=sums.count,
            has_light_tail=have_light_tails(sums.totals[rows]),
        )
        for last, rows in zip(last_steps, np.arange(len(sums.mean)).reshape(-1, num_members), strict=True)
    ]


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


def sample_runs(
    policy: AbstractPolicy,
    systems: LQG,
    *,
    horizon: int,
    key: PRNGKeyArray,
    num_rollouts: int,
    ends: bool = True,
) -> "Block":
    """A block of rollouts on every plant of a batch, by the program that measures their gaps."""
    references = references_of(systems, horizon=horizon, ends=ends)
    block = block_size(len(systems.A), horizon + 1, systems.num_outputs, num_rollouts)
    indices, limits = jnp.arange(block), read_limits(None, num_inputs=policy.num_inputs)
    policy, references, limits = cast((policy, references, limits), jnp.float64)
    states = begin_block(policy, references, key, indices)
    return run_block(policy, references, limits, key, indices, indices >= 0, pad_marks([horizon]), states)


class Block(eqx.Module):
    """Some rollouts of all members: totals up to given steps, sums of terms of every step, signals, ends."""

    totals: Float[Array, "mark member rollout"]
    per_step: Float[Array, "member time"]
    y: Float[Array, "member rollout time output"]
    u: Float[Array, "member rollout time input"]
    states: RolloutState


def pad_marks(last_steps: Sequence[int]) -> Int[Array, " mark"]:
    """The steps and the last one again, so that few numbers of them, and few programs, are met."""
    count = -(-len(last_steps) // MARKS) * MARKS
    return jnp.asarray([*last_steps, *[last_steps[-1]] * (count - len(last_steps))])


@eqx.filter_jit
def begin_block(policy: AbstractPolicy, references: Reference, key: Array, indices: Array) -> RolloutState:
    """The rollouts of these numbers on all members, before the first step."""
    _, keys = rollout_keys(key, indices)
    of_member = jax.vmap(lambda reference, k: begin(policy, reference, k), in_axes=(None, 0))
    return jax.vmap(of_member, in_axes=(0, None))(references, keys)


@eqx.filter_jit
def run_block(
    policy: AbstractPolicy,
    references: Reference,
    limits: Limits,
    key: Array,
    indices: Array,
    is_counted: Array,
    marks: Array,
    states: RolloutState,
) -> Block:
    """The same rollouts over the steps of the references; totals are those up to the steps `marks`."""
    keys, _ = rollout_keys(key, indices)
    normals = draw_normals(keys, num_steps=references.K.shape[1], like=references)
    of_rollout = jax.vmap(
        lambda reference, normal, state: excess(policy, reference, normal, state, limits),
        in_axes=(None, 0, 0),
    )
    run = jax.vmap(of_rollout, in_axes=(0, None, 0))(references, normals, states)
    terms = run.per_step.astype(jnp.float64)
    terms = jnp.where(jnp.isnan(terms), jnp.inf, terms)
    terms = jnp.where(is_counted[None, :, None], terms, 0)
    # By a sum for each mark, not by running ones, whose rounding depends on how many there are.
    is_before = jnp.arange(terms.shape[2])[None, :] <= marks[:, None]
    totals = jax.vmap(lambda before: jnp.sum(jnp.where(before, terms, 0), axis=2))(is_before)
    return Block(totals, jnp.sum(terms, axis=1), run.y, run.u, run.end)


def _references_of(systems: LQG, horizon: int, ends: bool) -> Reference:
    count, terms = len(systems.A), (horizon + 1) * systems.num_states**2
    filled = -(-count // TOGETHER) * TOGETHER
    if filled * terms <= FEW_TERMS:  # the last one again, so that few sizes are compiled
        systems = take(systems, np.minimum(np.arange(filled), count - 1))
    steady = None if ends else solve_control(systems)
    return take(_map_references(systems, steady, horizon), np.arange(count))


@eqx.filter_jit
def _map_references(systems: LQG, steady: RiccatiSolution | None, horizon: int) -> Reference:
    def of_member(plant: LQG, steady: RiccatiSolution | None) -> Reference:
        return make_reference(plant, plan_finite(plant, steady, horizon=horizon))

    return jax.vmap(of_member)(systems, steady)
