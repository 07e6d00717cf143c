"""What a policy costs online, on noise that all policies have in common: what comparisons are made of.

    excess = sum_t ||u_t + K xhat_{t|t}||^2_M          of the real plant, with its exact filter (`run`)

The noise of seed i depends on i alone, and is the same on every plant. A run that diverged is counted as
such, and means are over the others: with x_ij the excess of seed i on truth j, n_j the runs that held there,

    mean = (1/T) sum_j m_j ,   m_j = sum_i x_ij / n_j ,
    stderr^2 = n/(n-1) sum_i d_i^2 ,   d_i = (1/T) sum_j (x_ij - m_j) / n_j

where a seed's runs on all T truths count as one, since they have their noise in common.

Which plant is true matters: optimism is free where the truth has the lowest J and dearest where it has the
highest. So there are three of them, the middle member and those with the lowest and the highest J.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from lqgap.adaptive.learner import AbstractLearner
from lqgap.adaptive.run import run_many
from lqgap.adaptive.trace import Trace
from lqgap.adaptive.trained import TrainedPolicy
from lqgap.arguments import IntLike
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import LimitsLike
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members

NUM_POINTS = 2_000  # at which runs are looked at
NUM_SHOWN = 48  # of them, evenly spaced in logarithms
MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class Measured:
    """Runs of a policy, a row for each truth and a column for each seed; and the mean excess as it grows."""

    truths: Mapping[str, int]
    seeds: tuple[int, ...]
    traces: tuple[tuple[Trace, ...], ...]
    steps: np.ndarray
    mean: np.ndarray  # at these steps
    stderr: np.ndarray
    optimum: float  # J, mean over the truths
    seconds_per_step: float  # of one run, side by side with the others


def measure(
    policy: AbstractPolicy,
    members: Members,
    *,
    horizon: IntLike,
    seeds: Sequence[int],
    truths: Mapping[str, int] | None = None,
    limits: LimitsLike = None,
) -> Measured:
    """Run a policy over steps 0..horizon on some members of a class.

    Args:
        seeds: of the noise, one run on every truth for each.
        truths: members by name; by default those of `pick_truths`.
        limits: of inputs, which methods are not told; excess is still that above the optimum without them.
    """
    members = Finite.of(members)
    truths = pick_truths(members) if truths is None else truths
    numbers = read_seeds(seeds)
    learner = policy if isinstance(policy, AbstractLearner) else TrainedPolicy(policy, members)
    rows = np.repeat(list(truths.values()), len(numbers))
    keys = jax.vmap(jax.random.key)(np.tile(np.asarray(numbers, dtype=np.uint32), len(truths)))
    flat = run_many(
        learner,
        take(members.systems, rows),
        horizon=horizon,
        keys=keys,
        num_points=NUM_POINTS,
        limits=limits,
    )
    count = len(numbers)
    traces = tuple(tuple(flat[start : start + count]) for start in range(0, len(flat), count))
    steps = flat[0].steps
    shown = np.unique(
        np.searchsorted(steps, np.geomspace(max(1, steps[min(1, len(steps) - 1)]), steps[-1], NUM_SHOWN))
    )
    excess = np.asarray([[trace.excess[shown] for trace in row] for row in traces])
    mean, stderr = mean_over_truths(excess, held(traces))
    seconds = float(flat[0].seconds[-1]) / (len(flat) * (steps[-1] + 1))
    optimum = float(np.mean(np.asarray(members.optima().J)[list(truths.values())]))
    return Measured(truths, numbers, traces, steps[shown], mean, stderr, optimum, seconds)


def pick_truths(members: Finite) -> dict[str, int]:
    """The middle member, those of lowest and highest J; one that is several of these has all their names.

    The middle is nearest to that of the ranges, in units of them; where members have no parameters but their
    number, its J is nearest to the median. Of equals it is the one nearest to the middle of the list.
    """
    J, values, count = np.asarray(members.optima().J), np.asarray(members.parameters), len(members)
    low, high = values.min(axis=0), values.max(axis=0)
    off = np.linalg.norm((values - (low + high) / 2) / np.where(high > low, high - low, 1.0), axis=1)
    off = np.abs(J - np.median(J)) if members.names == ("member",) else np.round(off, 9)
    middle = int(np.lexsort((np.abs(np.arange(count) - count // 2), off))[0])
    chosen = {"middle": middle, "lowest J": int(np.argmin(J)), "highest J": int(np.argmax(J))}
    names: dict[int, list[str]] = {}
    for name, index in chosen.items():
        names.setdefault(index, []).append(name)
    return {", ".join(each): index for index, each in names.items()}


def held(traces: Sequence[Sequence[Trace]]) -> np.ndarray:
    """Which runs did not diverge."""
    return np.asarray([[trace.diverged_at is None for trace in row] for row in traces])


def mean_over_truths(excess: np.ndarray, is_held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of values by truth, seed and what else; NaN where no run of a truth held.

    Args:
        is_held: by truth and seed, whether the run counts.
    """
    weight = is_held.reshape(*is_held.shape, *[1] * (excess.ndim - 2)).astype(float)
    count = weight.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.sum(weight * excess, axis=1, keepdims=True) / count
        deviations = np.mean(weight * (excess - means) / count, axis=0)
    num_seeds = excess.shape[1]
    scale = num_seeds / max(num_seeds - 1, 1)
    stderr = np.sqrt(scale * np.sum(deviations**2, axis=0))
    return np.asarray(means.mean(axis=(0, 1))), np.asarray(stderr)


def read_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Seeds that are whole numbers and differ."""
    numbers = tuple(seeds)
    if any(not isinstance(n, int | np.integer) or not 0 <= n <= MAX_SEED for n in numbers):
        raise InvalidArgumentError(f"seeds is {numbers!r}, expected whole numbers from 0 to {MAX_SEED}")
    if len(numbers) < 2 or len(set(numbers)) < len(numbers):
        raise InvalidArgumentError(f"seeds is {numbers!r}, expected two or more, each once")
    return tuple(int(number) for number in numbers)
