"""What rollouts say of every member: a mean with its interval where that can be known, quantiles always.

No confidence limit of a mean exists without an assumption on the tail. Here it is that the tail is light: the
index of `tails` is small on *every* member, since a policy that fails in one of a thousand runs of one plant
is not to be trusted on its neighbours. Then with skewness g, count n and quantiles q of Student's t, the
limits of the true mean are those of Hall's transformation (J. R. Statist. Soc. B 54, 1992),

    mean - stderr 3/a ((1 + a (q - a/6))^(1/3) - 1) ,    a = g / sqrt(n) ,

right for skewed totals, and few of them. What happens in fewer than about 3 / n of the runs remains unseen.
Where the tail is heavy, or rollouts are too few to tell, limits are infinite: nothing is claimed.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.special
from jaxtyping import Float

from lqgap.arguments import read_probability
from lqgap.evaluation.tails import FEWEST, heaviest_index, tail_index

DELTA = 0.05  # with which intervals may fail
QUANTILES = (0.5, 0.9)
DIVERGED = 100  # times the optimal cost: a run that costs more has diverged


class AbstractEstimate(eqx.Module):
    """Means over rollouts, a member a row; all members meet the same noise."""

    mean: eqx.AbstractVar[Float[np.ndarray, " member"]]
    stderr: eqx.AbstractVar[Float[np.ndarray, " member"]]  # of the sample: no claim where the tail is heavy
    totals: eqx.AbstractVar[Float[np.ndarray, "member rollout"]]  # of the first rollouts
    value: eqx.AbstractVar[Float[np.ndarray, " member"]]  # what the best policy for that member costs
    num_rollouts: eqx.AbstractVar[int]
    has_light_tail: eqx.AbstractVar[bool]  # on all members: else no mean has an interval

    @property
    def tail_index(self) -> Float[np.ndarray, " member"]:
        """The shape of the tail of every member's totals; NaN where rollouts are too few to tell."""
        return np.asarray([tail_index(row) for row in self.totals])

    @property
    def doubt(self) -> str:
        """Why no mean has an interval; empty where they have."""
        if self.has_light_tail:
            return ""
        if self.totals.shape[1] < FEWEST:
            return (
                f"{self.num_rollouts} rollouts are too few to judge the tail of the gaps: {FEWEST} are needed"
            )
        index = self.tail_index
        return f"the tail of the gaps is heavy: its index on member {np.argmax(index)} is {np.max(index):.2f}"

    @property
    def interval(self) -> Float[np.ndarray, "member end"]:
        """A 95 % interval of every member's true mean; infinite where none is claimed."""
        return np.stack([self._limits(DELTA / 2, upper=upper) for upper in (False, True)], axis=1)

    @property
    def quantiles(self) -> Float[np.ndarray, "member quantile"]:
        """What half, and nine in ten, of every member's runs did not exceed."""
        return np.quantile(self.totals, QUANTILES, axis=1, method="inverted_cdf").T

    @property
    def quantile_interval(self) -> Float[np.ndarray, "member quantile end"]:
        """95 % intervals of the true quantiles, whatever the law; infinite where rollouts are too few."""
        ends = ((0, 0), (1, 1))
        ordered = np.pad(np.sort(self.totals, axis=1), ends, constant_values=((0, 0), (-np.inf, np.inf)))
        return np.stack([ordered[:, _ranks(self.totals.shape[1], share)] for share in QUANTILES], axis=1)

    @property
    def share_diverged(self) -> Float[np.ndarray, " member"]:
        """The part of every member's runs that cost more than 100 times the optimum."""
        return np.mean(self.totals > DIVERGED * self.value[:, None], axis=1)

    @property
    def average(self) -> float:
        """The mean over members."""
        return float(np.mean(self.mean))

    @property
    def average_stderr(self) -> float:
        """The standard error of the mean over members."""
        return float(self.averaged().stderr[0])

    @property
    def argworst(self) -> int:
        """The member with the largest mean."""
        return int(np.argmax(self.mean))

    @property
    def worst(self) -> float:
        """The largest mean."""
        return float(np.max(self.mean))

    @property
    def worst_stderr(self) -> float:
        """The standard error of the largest mean."""
        return float(self.stderr[self.argworst])

    @property
    def worst_interval(self) -> tuple[float, float]:
        """A 95 % interval of the largest true mean, whichever member has it."""
        # The high end needs to hold for that member alone, the low end for whichever the largest limit is of.
        low = self._limits(DELTA / 2 / len(self.mean), upper=False)
        return float(np.max(low)), float(np.max(self._limits(DELTA / 2, upper=True)))

    def upper_limit(self, delta: float) -> float:
        """What no member's true mean exceeds, with confidence 1 - delta; infinite where none is claimed."""
        return float(np.max(self._limits(read_probability("delta", delta) / len(self.mean), upper=True)))

    def subset(self, rows: Any) -> Any:
        """The estimates of some members, in this order; tails stay judged over all."""
        return jax.tree.map(lambda leaf: leaf[rows], self)

    def averaged(self) -> Any:
        """The mean over members as the only row; its standard error knows that they share noise."""
        average = jax.tree.map(lambda leaf: np.mean(leaf, axis=0, keepdims=True), self)
        with np.errstate(invalid="ignore"):
            stderr = np.std(average.totals, axis=1, ddof=1) / np.sqrt(self.num_rollouts)
        stderr = np.where(np.isfinite(average.mean), stderr, np.inf)
        return eqx.tree_at(lambda estimate: estimate.stderr, average, stderr)

    def _limits(self, delta: float, *, upper: bool) -> Float[np.ndarray, " member"]:
        """One-sided confidence limits of every member's true mean."""
        if not self.has_light_tail:
            return np.full_like(self.mean, np.inf if upper else -np.inf)
        limits = confidence_limits(
            self.mean, self.stderr, skewness(self.totals), self.num_rollouts, delta=delta, upper=upper
        )
        return np.where(np.isfinite(self.mean), limits, self.mean)


def have_light_tails(totals: Float[np.ndarray, "member rollout"]) -> bool:
    """Whether every member's totals have been seen to have a light tail."""
    num_members, num_rollouts = totals.shape
    heaviest = heaviest_index(num_rollouts, num_members)
    return all(tail_index(row) <= heaviest for row in totals)


def confidence_limits(
    mean: Float[np.ndarray, " member"],
    stderr: Float[np.ndarray, " member"],
    skewness: Float[np.ndarray, " member"],
    count: int,
    *,
    delta: float,
    upper: bool,
) -> Float[np.ndarray, " member"]:
    """Limits that true means are beyond with probability delta each."""
    q = scipy.special.stdtrit(count - 1, delta if upper else 1 - delta)
    a = skewness / np.sqrt(count)
    is_skew = np.abs(a) > 1e-6
    a = np.where(is_skew, a, 1.0)
    steps = np.where(is_skew, 3 / a * (np.cbrt(1 + a * (q - a / 6)) - 1), q)
    with np.errstate(invalid="ignore"):
        return mean - stderr * steps


def skewness(totals: Float[np.ndarray, "member rollout"]) -> Float[np.ndarray, " member"]:
    """The third standardised moment of every row; zero where nothing varies."""
    with np.errstate(invalid="ignore", over="ignore"):
        centred = totals - np.mean(totals, axis=1, keepdims=True)
        scale = np.sqrt(np.mean(centred**2, axis=1, keepdims=True))
        return np.nan_to_num(np.mean((centred / np.where(scale > 0, scale, 1)) ** 3, axis=1))


def _ranks(count: int, share: float) -> list[int]:
    """The ranks between which a quantile lies with 95 %; 0 and count + 1 are beyond all values."""
    # The quantile is above the r-th value if at least r are below it: P = 1 - F(r - 1).
    below = scipy.special.bdtr(np.arange(count), count, share)
    return [int(np.sum(below <= DELTA / 2)), int(np.sum(below < 1 - DELTA / 2)) + 1]
