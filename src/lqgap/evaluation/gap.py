"""The sim-to-real gap of any policy on every member of a class, by the identity of `reference`."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import read_count, read_key, read_positive
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, read_systems, rollout_keys
from lqgap.evaluation.noise import standard_normal
from lqgap.evaluation.reference import Reference, excess, reference_of
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, read_limits
from lqgap.progress import track
from lqgap.systems import LQG

MAX_ROLLOUTS = 10_000_000
NUMBERS_AT_A_TIME = (
    4_000_000  # standard normals drawn at once: 32 MB; terms of all members, three times as many
)
MAX_TERMS = 100_000_000  # of members, steps and squared states
PILOT = 128
PAIRS_AT_A_TIME = 2_048  # of a member and a rollout: more would leave the processor's cache


class GapEstimate(eqx.Module):
    """V^pi - V* of every member, with standard errors.

    All members meet the same noise, so that their differences are known better than each gap; the standard
    error of `average` takes that into account.
    """

    mean: Float[np.ndarray, " member"]
    stderr: Float[np.ndarray, " member"]
    per_step: Float[np.ndarray, "member time"]
    value: Float[np.ndarray, " member"]  # V*: what the best policy for that member costs
    average: float
    average_stderr: float
    num_rollouts: int = eqx.field(static=True)

    @property
    def argworst(self) -> int:
        """The member with the largest gap."""
        return int(np.argmax(self.mean))

    @property
    def worst(self) -> float:
        """The largest gap."""
        return float(np.max(self.mean))

    @property
    def worst_stderr(self) -> float:
        """The standard error of the largest gap."""
        return float(self.stderr[self.argworst])


def gap(
    policy: AbstractPolicy,
    members: Any,
    *,
    horizon: Any,
    key: PRNGKeyArray,
    num_rollouts: Any = 256,
    target_stderr: Any = None,
    limits: Any = None,
    precision: str = "float64",
) -> GapEstimate:
    """Estimate the gap over steps 0..horizon; where a policy destabilises a member it may be infinite.

    Args:
        members: a finite class, a batched LQG, or one LQG.
        num_rollouts: how many for each member; with `target_stderr`, the least number (128 or more).
        target_stderr: go on until no finite gap has a larger standard error, or ten million rollouts are run.
        limits: (low, high), numbers or vectors: plants receive inputs clipped to them.
        precision: "float64" or "float32"; sums are in double precision either way.
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    systems = read_systems(policy, members)
    least = read_count("num_rollouts", num_rollouts, least=2, most=MAX_ROLLOUTS)
    target = np.inf if target_stderr is None else read_positive("target_stderr", target_stderr)
    # A rule that looks at few rollouts stops when they happen to agree.
    least = least if target == np.inf else max(least, PILOT)
    dtype = read_precision(precision)
    allowed = read_limits(limits, num_inputs=policy.num_inputs)
    references = references_of(systems, horizon=horizon)
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
    sums = _Sums(num_members, num_steps)
    block = block_size(num_members, num_steps - 1, num_outputs, num_rollouts)
    policy, references, limits = cast((policy, references, limits), dtype)
    with track("gap", total=num_rollouts if target == np.inf else None) as advance:
        for first in _blocks(block):
            count = block if target < np.inf else min(block, num_rollouts - first)
            indices = jnp.arange(first, first + block)
            sums.add(_block(policy, references, limits, key, indices, indices < first + count))
            advance(count)
            if sums.count >= num_rollouts and (sums.largest_stderr <= target or sums.count >= MAX_ROLLOUTS):
                break
    return sums.estimate(value)


def references_of(systems: LQG, *, horizon: int) -> Reference:
    """The references of all members; raises where a member's optimal cost leaves double precision."""
    size = len(systems.A) * (horizon + 1) * systems.num_states**2
    if size > MAX_TERMS:
        raise InvalidArgumentError(
            f"{len(systems.A)} members over {horizon + 1} steps do not fit into memory: take a subset of the "
            f"members at a time, or a shorter horizon"
        )
    references = _references_of(systems, horizon)
    finite = np.isfinite(np.asarray(references.value))
    if not np.all(finite):
        raise NotConvergedError(
            f"member {int(np.argmin(finite))} has no optimal cost over steps 0..{horizon} in double "
            f"precision: an unstable mode is not detectable or not stabilisable (see lqgap.check_assumptions)"
        )
    return references


def block_size(num_members: int, horizon: int, num_outputs: int, num_rollouts: int) -> int:
    """How many rollouts of all members run at a time, so that memory stays bounded."""
    by_noise = NUMBERS_AT_A_TIME // ((horizon + 1) * num_outputs)
    by_terms = 3 * NUMBERS_AT_A_TIME // ((horizon + 1) * num_members)
    return max(1, min(num_rollouts, by_noise, by_terms, PAIRS_AT_A_TIME // num_members))


def draw_normals(key: PRNGKeyArray, *, num_steps: int, like: Reference) -> Float[Array, "time output"]:
    """The standard normal numbers of one rollout."""
    shape = (num_steps, like.C.shape[-2])
    return standard_normal(key, shape, like.C.dtype)


def standard_error(first: Any, second: Any, count: int) -> Any:
    """Of a mean, from the sum and the sum of squares; infinite where the mean is."""
    with np.errstate(invalid="ignore"):
        variance = np.maximum(second / count - (first / count) ** 2, 0) * count / max(count - 1, 1)
    return np.where(np.isfinite(first), np.sqrt(variance / count), np.inf)


class _Sums:
    """Running sums over rollouts: memory does not grow with their number."""

    def __init__(self, num_members: int, num_steps: int):
        self.count = 0
        self.first, self.second = np.zeros(num_members), np.zeros(num_members)
        self.per_step = np.zeros((num_members, num_steps))
        self.average, self.average_second = 0.0, 0.0

    def add(self, sums: tuple[Any, ...]) -> None:
        count, first, second, per_step, average, average_second = (np.asarray(part) for part in sums)
        self.count += int(count)
        with np.errstate(over="ignore"):
            self.first += first
            self.second += second
            self.per_step += per_step
            self.average += float(average)
            self.average_second += float(average_second)

    @property
    def largest_stderr(self) -> float:
        """Of the members whose gap is finite: an infinite one is known well enough."""
        stderr = standard_error(self.first, self.second, self.count)
        return float(np.max(stderr, where=np.isfinite(stderr), initial=0.0))

    def estimate(self, value: np.ndarray) -> GapEstimate:
        return GapEstimate(
            mean=self.first / self.count,
            stderr=standard_error(self.first, self.second, self.count),
            per_step=self.per_step / self.count,
            value=value,
            average=self.average / self.count,
            average_stderr=float(standard_error(self.average, self.average_second, self.count)),
            num_rollouts=self.count,
        )


def _blocks(size: int) -> Iterator[int]:
    first = 0
    while True:
        yield first
        first += size


@eqx.filter_jit
def _references_of(systems: LQG, horizon: int) -> Reference:
    return jax.vmap(lambda plant: reference_of(plant, horizon=horizon))(systems)


@eqx.filter_jit
def _block(
    policy: AbstractPolicy, references: Reference, limits: Limits, key: Array, indices: Array, counted: Array
) -> tuple[Array, ...]:
    """Sums over a block of rollouts, of those that count."""
    num_steps = references.K.shape[1]
    keys_noise, keys_policy = rollout_keys(key, indices)
    normals = jax.vmap(lambda k: draw_normals(k, num_steps=num_steps, like=references))(keys_noise)

    def of_member(reference: Reference) -> Array:
        return jax.vmap(lambda normal, k: excess(policy, reference, normal, k, limits).per_step)(
            normals, keys_policy
        )

    terms = jax.vmap(of_member)(references).astype(jnp.float64)
    terms = jnp.where(jnp.isnan(terms), jnp.inf, terms)
    weight = counted.astype(jnp.float64)
    totals = jnp.sum(jnp.where(counted[None, :, None], terms, 0), axis=2)
    average = jnp.mean(totals, axis=0)
    per_step = jnp.sum(jnp.where(counted[None, :, None], terms, 0), axis=1)
    return (
        jnp.sum(weight),
        jnp.sum(totals, axis=1),
        jnp.sum(totals**2, axis=1),
        per_step,
        jnp.sum(average),
        jnp.sum(average**2),
    )
