"""What no policy can beat over the ranges of a family, where every plant of them counts.

The ranges contain all members, and all plants with given values of the discrete parameters (a branch):

    minimax gap of the ranges >= minimax gap of any members inside, and of any branch.

The converse is false. A bound that rests on a density over the ranges says nothing of a finite class, not
even of a grid of the same ranges, on which a policy may do better: hence two types of result.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import numpy as np

from lqgap.errors import InvalidArgumentError, LqgapError
from lqgap.simulators import ParameterBox
from lqgap.simulators.family import AbstractFamily
from lqgap.theory.lower_bounds.bound import LowerBound
from lqgap.theory.lower_bounds.van_trees.bound import van_trees_bound

# By kind, a function (family, *, horizon, ends) of a family whose parameters are all intervals; what it
# returns has the first six fields of a `RangesBound`. It raises an LqgapError where there is no bound.
BOUNDS: dict[str, Callable[..., Any]] = {"van-trees": van_trees_bound}
MAX_BRANCHES = 4  # that are bounded; of more as many are taken, evenly
MAX_CORNERS = 2**12  # that are looked at, of a box of many parameters


class RangesBound(eqx.Module):
    """No policy whatever has a smaller worst gap over the ranges than `value`; it bounds no finite class.

    The kinds of `inside` are proved, up to rounding. Of others, `spread` is what was taken off for the
    quadrature over the parameters, which is computed, and seen to converge, not enclosed; `confidence` is 1
    for all kinds so far.
    """

    over: ClassVar[Literal["ranges"]] = "ranges"

    value: float
    kind: str = eqx.field(static=True)
    spread: float
    confidence: float
    prior: str = eqx.field(static=True)  # over the parameters, in words
    reasons: tuple[str, ...] = eqx.field(static=True)  # why it may be far below the best possible
    inside: LowerBound  # of members that lie in the ranges
    by_kind: dict[str, float]

    @property
    def is_inherited(self) -> bool:
        """Whether it is the bound of members inside, and so of any class that has them."""
        return self.kind in self.inside.by_kind


def bound_ranges(
    family: AbstractFamily,
    inside: LowerBound,
    *,
    horizon: int,
    ends: bool = True,
    kinds: Sequence[str] | None = None,
) -> RangesBound:
    """The largest of the bound of members inside and those of the ranges themselves.

    Args:
        inside: of members of the family, over the same task.
        kinds: of `BOUNDS`; all by default.
    """
    chosen = tuple(BOUNDS) if kinds is None else kinds
    found, missing = _find(family, chosen, horizon=horizon, ends=ends) if chosen else ([], [])
    by_kind = inside.by_kind | {kind: _largest(found, kind) for kind in chosen if _largest(found, kind) > 0}
    best = max(found, key=lambda each: each.value, default=None)
    if best is None or best.value <= inside.value:
        reasons = (*inside.reasons, *(reason for each in found for reason in each.reasons), *missing)
        prior = "a few members of the ranges"
        return RangesBound(inside.value, inside.kind, 0.0, 1.0, prior, reasons, inside, by_kind)
    confidence = 1 - sum(1 - each.confidence for each in found)  # the largest of several holds if all do
    return RangesBound(
        best.value, best.kind, best.spread, confidence, best.prior, tuple(best.reasons), inside, by_kind
    )


def boxes_of(family: AbstractFamily) -> list[AbstractFamily]:
    """Parts of the family whose parameters are all intervals: its branches, or some of them."""
    wide = [each for each in family.parameters if not each.choices and each.low < each.high]
    if not wide:
        raise InvalidArgumentError("no parameter has an interval, on which a prior could have a density")
    corners = itertools.product(*(parameter.points(2) for parameter in family.parameters))
    if not np.all(family.is_inside(np.array(list(itertools.islice(corners, MAX_CORNERS))))):
        raise InvalidArgumentError("the family does not fill the box of its parameters' intervals")
    if len(wide) == len(family.parameters):
        return [family]
    fixed = {p.name: p.low for p in family.parameters if p not in wide and not p.choices}
    branches = family.branches
    chosen = np.unique(np.linspace(0, len(branches) - 1, MAX_BRANCHES).round().astype(int))
    return [
        ParameterBox(
            functools.partial(family.build, **fixed, **dict(branches[index].held)),
            {p.name: (p.low, p.high) for p in wide},
            units={p.name: p.unit for p in wide},
        )
        for index in chosen
    ]


def _find(
    family: AbstractFamily, kinds: Sequence[str], *, horizon: int, ends: bool
) -> tuple[list[Any], list[str]]:
    """The bounds of all boxes, and why there are not more."""
    found, missing = [], []
    try:
        for kind, box in itertools.product(kinds, boxes_of(family)):
            found.append(BOUNDS[kind](box, horizon=horizon, ends=ends))
    except LqgapError as error:
        missing.append(f"there is no {' or '.join(kinds)} bound of the ranges: {error}")
    return found, missing


def _largest(found: Sequence[Any], kind: str) -> float:
    return max((float(each.value) for each in found if each.kind == kind), default=0.0)
