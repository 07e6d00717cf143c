"""Sums over rollouts in blocks, so that memory does not grow with their number.

The noise of a rollout depends on the key and the rollout's number alone: policies that are compared with one
key meet the same noise, however many rollouts run at a time, and so do all members of a class.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.evaluation.noise import standard_normal
from lqgap.evaluation.reference import Reference
from lqgap.evaluation.tails import FEWEST
from lqgap.progress import track
from lqgap.systems import LQG

MAX_ROLLOUTS = 10_000_000
NUMBERS_AT_A_TIME = 4_000_000  # standard normals drawn at once: 32 MB; terms and signals, three times that
PAIRS_AT_A_TIME = 2_048  # of a member and a rollout: more would leave the processor's cache
MOST_KEPT = 4_096  # rollouts whose totals are kept; fewer of a thousand members and more

BlockFn = Callable[[Array, Array], tuple[Array, ...]]


@dataclass
class Sums:
    """The sums over `count` rollouts of the totals, of their squares, by member, and of anything else."""

    count: int
    kept: list[np.ndarray]  # the totals of the first rollouts, a block each
    parts: list[np.ndarray]

    @property
    def mean(self) -> np.ndarray:
        """Of the totals."""
        return self.parts[0] / self.count

    @property
    def stderr(self) -> np.ndarray:
        """Standard errors of the means."""
        return standard_error(self.parts[0], self.parts[1], self.count)

    @property
    def totals(self) -> Float[np.ndarray, "member rollout"]:
        """Of the first rollouts: all of them, or enough to know their law."""
        return np.concatenate(self.kept, axis=1)[:, : _most_kept(len(self.kept[0]))]


def sum_rollouts(
    block_fn: BlockFn, *, label: str, block: int, num_rollouts: int, target: float = np.inf
) -> Sums:
    """Add up `block_fn(indices, is_counted)`: totals by member and rollout, then sums of anything else.

    Args:
        num_rollouts: how many; with a target, the least number.
        target: go on until no finite mean has a larger standard error, or `MAX_ROLLOUTS` are run.
    """
    is_open = target < np.inf
    sums = Sums(0, [], [])
    with track(label, total=None if is_open else num_rollouts) as advance:
        while sums.count < num_rollouts or (sums.count < MAX_ROLLOUTS and _largest(sums.stderr) > target):
            count = block if is_open else min(block, num_rollouts - sums.count)
            indices = jnp.arange(sums.count, sums.count + block)
            totals, *others = map(np.asarray, block_fn(indices, indices < sums.count + count))
            with np.errstate(over="ignore"):
                added = [np.sum(totals, axis=1), np.sum(totals**2, axis=1), *others]
                before = sums.parts or [np.zeros(())] * len(added)
                parts = [np.asarray(old + new) for old, new in zip(before, added, strict=True)]
            kept = [totals[:, :count]] if sums.count < _most_kept(len(totals)) else []
            sums = Sums(sums.count + count, sums.kept + kept, parts)
            advance(count)
    return sums


def block_size(num_members: int, num_steps: int, num_outputs: int, num_rollouts: int) -> int:
    """How many rollouts of all members run at a time, so that memory stays bounded."""
    by_noise = NUMBERS_AT_A_TIME // (num_steps * num_outputs)
    by_terms = 3 * NUMBERS_AT_A_TIME // (num_steps * num_members * (2 + num_outputs))
    return max(1, min(num_rollouts, by_noise, by_terms, PAIRS_AT_A_TIME // num_members))


def rollout_keys(key: PRNGKeyArray, indices: Int[Array, " rollout"]) -> tuple[Array, Array]:
    """Keys of the noise and of the policy's own chance, for each rollout."""
    keys = jax.vmap(lambda index: jax.random.split(jax.random.fold_in(key, index)))(indices)
    return keys[:, 0], keys[:, 1]


def draw_normals(
    keys: Array, *, num_steps: int, like: Reference | LQG
) -> Float[Array, "rollout time output"]:
    """The standard normal numbers of every rollout."""
    shape = (num_steps, like.C.shape[-2])
    return jax.vmap(lambda key: standard_normal(key, shape, like.C.dtype))(keys)


def standard_error(
    first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."], count: int
) -> np.ndarray:
    """Of a mean, from the sum and the sum of squares; infinite where the mean or its square is."""
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.maximum(second / count - (first / count) ** 2, 0) * count / max(count - 1, 1)
    return np.where(np.isfinite(variance), np.sqrt(variance / count), np.inf)


def _most_kept(num_members: int) -> int:
    return min(MOST_KEPT, max(FEWEST, NUMBERS_AT_A_TIME // num_members))


def _largest(stderr: np.ndarray) -> float:
    """Of the members whose mean is finite: an infinite one is known well enough."""
    return float(np.max(stderr, where=np.isfinite(stderr), initial=0.0))
