"""The worst members of a family: where in the ranges of its parameters a policy loses most.

Starts are the corners of the ranges and random members; from the worst of them that lie apart, climbers set
out. A climb tries several strides along the gap's derivative, which passes through the rollout, the filter
and the optimum of the member, and a few other directions; where `build` cannot be traced, these alone. A
climber moves only to where the gap is larger, and takes shorter strides where it is not.

All candidates meet the same noise and are evaluated by one program, in batches of one size; what is found, on
fresh noise, so that the choice gains nothing. No search proves that no gap is larger than those it found.
"""

import itertools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import IntLike, read_count, read_key
from lqgap.errors import NotConvergedError
from lqgap.evaluation.arguments import read_horizon
from lqgap.evaluation.gap import GapEstimate, gap, have_optimum
from lqgap.evaluation.monte_carlo import MAX_ROLLOUTS, draw_normals, rollout_keys
from lqgap.evaluation.reference import begin, excess, reference_of
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.progress import is_spent
from lqgap.simulators import Finite
from lqgap.simulators.building import Branch, Formula
from lqgap.simulators.family import AbstractFamily

BATCH = 32  # candidates that are evaluated at once
NUM_STARTS = 2 * BATCH
NUM_CLIMBERS, NUM_TRIALS = 4, 8  # of each climber in a climb: together one batch
STRIDE = 0.25  # of the first climb, in units of the parameters' ranges
APART = 0.2  # climbers start at least so far from each other, in these units
BY_THEN = 0.5  # of a budget of time climbs end: what is found must still be judged
FRESH = 4  # times as many rollouts on fresh noise

Rows = Float[np.ndarray, "member parameter"]


class WorstFound(eqx.Module):
    """Members with large gaps, the worst first, and their gaps on noise that the search never saw."""

    members: Finite
    gaps: GapEstimate

    @property
    def worst(self) -> float:
        """The largest gap."""
        return self.gaps.worst

    def describe_worst(self) -> str:
        """The parameters of the member with the largest gap."""
        return self.members.describe(self.gaps.argworst)


def find_worst(
    policy: AbstractPolicy,
    family: AbstractFamily,
    *,
    key: PRNGKeyArray,
    horizon: IntLike,
    limits: LimitsLike = None,
    num_rollouts: IntLike = 64,
    ends: bool = True,
) -> WorstFound:
    """Search the ranges of a family for the members on which a policy loses most.

    Args:
        limits: (low, high) of the inputs.
        num_rollouts: of every candidate; of those that are reported, four times as many.
        ends: whether the task ends at the horizon (see `reference`).
    """
    horizon = read_horizon(policy, horizon)
    num_rollouts = read_count("num_rollouts", num_rollouts, least=2, most=MAX_ROLLOUTS // FRESH)
    key_start, key_noise, key_fresh = jax.random.split(read_key(key), 3)
    search = Search(policy, family, key_noise, horizon, num_rollouts, limits=limits, ends=ends)
    theta = spread_starts(family, key_start)
    candidates = search.climb_from(theta, search.gaps(theta))
    judged = search.judge(candidates, key_fresh, FRESH * num_rollouts)
    worst_first = np.argsort(-judged.mean[: len(candidates)])
    return WorstFound(family.members(candidates[worst_first]), judged.subset(worst_first))


def spread_starts(family: AbstractFamily, key: PRNGKeyArray) -> Rows:
    """Corners of the ranges, with all choices, and random members."""
    ends = [parameter.points(2) for parameter in family.parameters]
    corners = np.array(list(itertools.islice(itertools.product(*ends), 2**16)))
    some = np.random.default_rng(_seed(key)).permutation(len(corners))[:BATCH]
    corners = corners[some][family.is_inside(corners[some])]
    return np.concatenate([corners, family.sample_parameters(key, NUM_STARTS)])[:NUM_STARTS]


@dataclass(frozen=True)
class Search:
    """A search that climbs on the noise of one key.

    Args:
        num_climbs: how often each climber tries to get higher.
        by_derivative: whether derivatives are used where there are some, which is a program of its own.
    """

    policy: AbstractPolicy
    family: AbstractFamily
    key_noise: Array
    horizon: int
    num_rollouts: int
    limits: LimitsLike = None
    ends: bool = True
    num_climbs: int = 8
    by_derivative: bool = True

    def climb_from(
        self, theta: Rows, gaps: Float[np.ndarray, " member"]
    ) -> Float[np.ndarray, "candidate parameter"]:
        """At most one batch of rows with large gaps: where climbers got, and the worst of the starts.

        Args:
            gaps: of the starts, on the noise of the search.
        """
        climbers = self._spread(theta, gaps)
        climbed = self._climb(theta[climbers], gaps[climbers])
        others = [row for row in np.argsort(-gaps)[:BATCH] if row not in climbers]
        return np.concatenate([climbed, theta[others]])[:BATCH]

    def gaps(self, theta: Rows) -> np.ndarray:
        """The gaps of many members on the noise of the search; minus infinity where there is no optimum."""
        batches = (theta[first : first + BATCH] for first in range(0, len(theta), BATCH))
        return np.concatenate([self._gaps_of_batch(batch) for batch in batches])

    def judge(self, theta: Rows, key: Array, num_rollouts: int) -> GapEstimate:
        """The gaps of at most one batch of members, the last of which fills it up."""
        members = self.family.members(theta[np.minimum(np.arange(BATCH), len(theta) - 1)])
        return gap(
            self.policy,
            members,
            horizon=self.horizon,
            key=key,
            num_rollouts=num_rollouts,
            limits=self.limits,
            ends=self.ends,
        )

    def _gaps_of_batch(self, theta: Rows) -> np.ndarray:
        try:
            return self.judge(theta, self.key_noise, self.num_rollouts).mean[: len(theta)]
        except NotConvergedError:
            members = self.family.members(theta)
            is_solvable = have_optimum(members.systems, horizon=self.horizon, ends=self.ends)
            if not np.any(is_solvable):
                return np.full(len(theta), -np.inf)
            return np.where(is_solvable, self._gaps_of_batch(_fill(theta, is_solvable)), -np.inf)

    def _spread(self, theta: Rows, gaps: np.ndarray) -> list[int]:
        """The numbers of the worst rows that lie apart from each other."""
        low, width = self.extent()
        unit = (theta - low) / width
        chosen: list[int] = []
        for row in np.argsort(-gaps):
            if len(chosen) < NUM_CLIMBERS and np.all(
                np.linalg.norm(unit[chosen] - unit[row], axis=1) > APART
            ):
                chosen.append(int(row))
        return chosen

    def _climb(self, theta: Rows, gaps: np.ndarray) -> Rows:
        """The rows after all climbs."""
        random = np.random.default_rng(_seed(self.key_noise))
        low, width = self.extent()
        high = np.array([parameter.high for parameter in self.family.parameters])
        stride = np.full(len(theta), STRIDE)
        rows = np.arange(len(theta))
        for _ in range(self.num_climbs):
            if is_spent(BY_THEN):
                break
            trials = theta[:, None] + stride[:, None, None] * self._directions(theta, random) * width
            trials = np.clip(trials, low, high)
            inside = self.family.is_inside(trials.reshape(-1, len(low))).reshape(trials.shape[:2])
            trials = np.where(inside[:, :, None], trials, theta[:, None])
            reached = self.gaps(trials.reshape(-1, len(low))).reshape(trials.shape[:2])
            best = np.argmax(reached, axis=1)
            is_better = reached[rows, best] > gaps
            theta = np.where(is_better[:, None], trials[rows, best], theta)
            gaps = np.maximum(reached[rows, best], gaps)
            stride = np.where(is_better, stride, stride / 2)
        return theta

    def _directions(
        self, theta: Rows, random: np.random.Generator
    ) -> Float[np.ndarray, "member trial parameter"]:
        """For each row: a few strides along the derivative, both ways along some axes, and random ones."""
        directions = np.zeros((len(theta), NUM_TRIALS, theta.shape[1]))
        for branch in self.family.branches:
            rows, columns = branch.rows_of(theta), branch.columns
            if not len(rows) or not columns:
                continue
            slopes = self._slopes(branch, theta[rows])
            for row, slope in zip(rows, slopes, strict=True):
                directions[row][:, columns] = _fan(slope, random)
        return directions

    def _slopes(self, branch: Branch, theta: Rows) -> Float[np.ndarray, "member continuous"]:
        """The directions of the gap's derivative, in units of the ranges; zero where there is none."""
        low, high = branch.ends
        if not (branch.is_traceable and self.by_derivative):
            return np.zeros((len(theta), len(low)))
        values = theta[np.minimum(np.arange(NUM_CLIMBERS), len(theta) - 1)][:, branch.columns]
        limits = read_limits(self.limits, num_inputs=self.policy.num_inputs)
        slopes = _slopes(
            self.policy,
            branch.formula,
            jnp.asarray(values),
            self.key_noise,
            limits,
            self.horizon,
            self.num_rollouts,
            self.ends,
        )
        slopes = np.asarray(slopes)[: len(theta)] * (high - low)
        sizes = np.linalg.norm(slopes, axis=1, keepdims=True)
        is_usable = np.isfinite(sizes) & (sizes > 0)
        return np.where(is_usable, slopes, 0) / np.where(is_usable, sizes, 1)

    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """The low ends of the ranges, and their widths; 1 for a width of zero, as it is divided by."""
        parameters = self.family.parameters
        low, high = (np.array([getattr(p, end) for p in parameters]) for end in ("low", "high"))
        return low, np.where(high > low, high - low, 1.0)


def _fan(
    slope: Float[np.ndarray, " continuous"], random: np.random.Generator
) -> Float[np.ndarray, "trial continuous"]:
    """Directions of one climb, the first along the slope if there is one."""
    along = [slope, slope / 2, slope / 4] if np.any(slope) else []
    axes = np.eye(len(slope))[random.permutation(len(slope))]
    ways = np.stack([axes, -axes], axis=1).reshape(-1, len(slope))[: NUM_TRIALS - len(along) - 1]
    others = random.normal(size=(NUM_TRIALS - len(along) - len(ways), len(slope)))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    return np.concatenate([*(s[None] for s in along), ways, others])


def _fill(theta: Rows, is_kept: np.ndarray) -> Rows:
    """The rows that are kept, and the first of them in place of the others."""
    return theta[np.where(is_kept, np.arange(len(theta)), np.argmax(is_kept))]


def _seed(key: Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(key))


@eqx.filter_jit
def _slopes(
    policy: AbstractPolicy,
    formula: Formula,
    values: Float[Array, "member continuous"],
    key: Array,
    limits: Limits,
    horizon: int,
    num_rollouts: int,
    ends: bool,
) -> Float[Array, "member continuous"]:
    """The derivative of the gap by the continuous parameters, at each row of them."""

    def gap_at(value: Array) -> Array:
        reference = reference_of(formula.plant(value), horizon=horizon, ends=ends)
        keys_noise, keys_policy = rollout_keys(key, jnp.arange(num_rollouts))
        normals = draw_normals(keys_noise, num_steps=horizon + 1, like=reference)

        def total(normal: Array, key: Array) -> Array:
            return jnp.sum(excess(policy, reference, normal, begin(policy, reference, key), limits).per_step)

        return jnp.mean(jax.vmap(total)(normals, keys_policy))

    # One member after the other: their loops must not run at the same time (docs/decisions/0005).
    return jax.lax.map(jax.grad(gap_at), values)
