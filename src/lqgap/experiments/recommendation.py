"""Which method to put on the plant: the best that is fit and has a policy file; of equals, the simplest.

Methods are compared by their largest gap over all that was tried: the ranges, the class and the real plants;
in a task that goes on also by what as many steps cost later on.
Two are equal if the noise explains their difference, and is no larger than the gap of the better one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lqgap.experiments.record import Estimate, MethodGaps

NUM_STDERR = 2.0


@dataclass(frozen=True)
class Candidate:
    """What is known of a method."""

    gaps: MethodGaps
    totals: Sequence[float]  # single runs on the worst plant; of all methods on the same noise
    has_file: bool
    is_fit: bool

    @property
    def worst(self) -> float:
        """The largest gap over all that was tried."""
        return worst_of(self.gaps).mean


@dataclass(frozen=True)
class Recommendation:
    """The method to use; those that are as good; and one that is better and cannot be had as a file."""

    method: str | None
    equals: tuple[str, ...] = ()
    better: str | None = None


def recommend(candidates: Mapping[str, Candidate]) -> Recommendation:
    """The choice of candidates, of which the simplest comes first; None if no method with a file is fit."""
    fit = {name: each for name, each in candidates.items() if each.is_fit}
    usable = {name: each for name, each in fit.items() if each.has_file}
    if not usable:
        return Recommendation(None, better=_best(fit) if fit else None)
    best = _best(usable)
    equal = [name for name, each in usable.items() if name == best or _is_equal(each, usable[best])]
    chosen = equal[0]
    leader = _best(fit)
    is_behind = leader not in usable and not _is_equal(usable[chosen], fit[leader])
    return Recommendation(
        chosen, tuple(name for name in equal if name != chosen), leader if is_behind else None
    )


def worst_of(gaps: MethodGaps) -> Estimate:
    """The largest gap over all that was tried."""
    found = [gaps.box_worst, gaps.grid_worst, gaps.real_worst, gaps.later_worst]
    return max((each for each in found if each is not None), key=lambda each: each.mean)


def is_within_noise(more: float, stderr: float, best: float) -> bool:
    """Whether the noise explains how much larger a gap is than the best, and is not all there is."""
    return math.isfinite(stderr) and more <= NUM_STDERR * stderr <= best


def _is_equal(one: Candidate, best: Candidate) -> bool:
    """By the difference of single runs, in which what both have in common cancels."""
    count = min(len(one.totals), len(best.totals))
    with np.errstate(invalid="ignore"):
        difference = np.asarray(one.totals[:count]) - np.asarray(best.totals[:count])
        stderr = float(np.std(difference, ddof=1)) / math.sqrt(count)
    return is_within_noise(one.worst - best.worst, stderr, best.worst)


def _best(candidates: Mapping[str, Candidate]) -> str:
    return min(candidates, key=lambda name: candidates[name].worst)
