"""Which method to put on the plant: the best that is fit and has a policy file; of equals, the simplest.

Methods are compared by their largest gap over all that was tried: the ranges, the class and the real plants.
Two are equal if the noise explains their difference, and is no larger than the gap of the better one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lqgap.experiments.record import Estimate, MethodGaps

SIMPLEST_FIRST = ("nominal", "linear", "bank", "randomized", "robust", "identify", "vtr")
NUM_STDERR = 2.0


@dataclass(frozen=True)
class Candidate:
    """What is known of a method."""

    gaps: MethodGaps
    has_file: bool
    is_fit: bool


@dataclass(frozen=True)
class Recommendation:
    """The method to use; those that are as good; and one that is better and cannot be had as a file."""

    method: str | None
    equals: tuple[str, ...] = ()
    better: str | None = None


def recommend(candidates: Mapping[str, Candidate]) -> Recommendation:
    """The choice; None if no method with a file is fit."""
    fit = {name: worst_of(each.gaps) for name, each in candidates.items() if each.is_fit}
    usable = {name: worst for name, worst in fit.items() if candidates[name].has_file}
    if not usable:
        return Recommendation(None, better=_best(fit) if fit else None)
    best = _best(usable)
    equal = [name for name, worst in usable.items() if name == best or is_equal(worst, usable[best])]
    chosen = min(equal, key=lambda name: (SIMPLEST_FIRST.index(name), usable[name].mean))
    leader = _best(fit)
    is_behind = leader not in usable and not is_equal(usable[chosen], fit[leader])
    return Recommendation(
        chosen, tuple(name for name in equal if name != chosen), leader if is_behind else None
    )


def worst_of(gaps: MethodGaps) -> Estimate:
    """The largest gap over all that was tried."""
    found = [gaps.box_worst, gaps.grid_worst, gaps.real_worst]
    return max((each for each in found if each is not None), key=lambda each: each.mean)


def is_equal(one: Estimate, best: Estimate) -> bool:
    """Whether the noise explains how much larger one is than the best, and is not all there is."""
    noise = NUM_STDERR * float(np.hypot(one.stderr, best.stderr))
    return math.isfinite(noise) and one.mean - best.mean <= noise <= best.mean


def _best(worst: Mapping[str, Estimate]) -> str:
    return min(worst, key=lambda name: worst[name].mean)
