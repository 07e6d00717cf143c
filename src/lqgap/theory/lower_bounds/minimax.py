"""What no policy can beat: a number below min over policies of max over plants of the gap.

The largest bound of several kinds, each for every policy, adaptive, nonlinear or randomised. Those of a
finite class are proved; what rounding may add to them is taken off:

    bayes       the best policy against a prior, if the member is revealed after a step or two  (`belief`)
    two-point   any two members that take time to be told apart                                (`two_point`)
    input-only  two members that differ in B alone                                             (`input_pair`)

The bound of members of a family holds for its ranges, which have kinds of their own (`ranges`). The other way
round nothing follows: a bound of the ranges does not bound a class.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import equinox as eqx
import jax
import numpy as np

from lqgap.arguments import IntLike, read_count, read_list
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import MAX_HORIZON
from lqgap.evaluation.gap import have_optimum, references_of
from lqgap.evaluation.worst import spread_starts
from lqgap.policies.policy import require_one_of
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily
from lqgap.simulators.finite import Members as MembersLike
from lqgap.theory.lower_bounds import ranges
from lqgap.theory.lower_bounds.belief import Bayes
from lqgap.theory.lower_bounds.bound import AbstractLowerBound, Found, LowerBound, Members, spread_prior
from lqgap.theory.lower_bounds.input_pair import InputOnly
from lqgap.theory.lower_bounds.ranges import RangesBound
from lqgap.theory.lower_bounds.two_point import TwoPoint

BOUNDS: dict[str, AbstractLowerBound] = {bound.kind: bound for bound in (TwoPoint(), InputOnly(), Bayes())}
KINDS = tuple(BOUNDS)
ROUNDING = 1e-14  # of V*, between plants that hardly differ; it is taken off
MAX_MEMBERS = 32  # whose pairs are all looked at; of a larger class as many are taken, evenly


@overload
def minimax_lower_bound(
    members: AbstractFamily, *, horizon: IntLike, kinds: Sequence[str] | None = None, ends: bool = True
) -> RangesBound: ...
@overload
def minimax_lower_bound(
    members: MembersLike, *, horizon: IntLike, kinds: Sequence[str] | None = None, ends: bool = True
) -> LowerBound: ...
def minimax_lower_bound(
    members: MembersLike | AbstractFamily,
    *,
    horizon: IntLike,
    kinds: Sequence[str] | None = None,
    ends: bool = True,
) -> LowerBound | RangesBound:
    """The largest lower bound found over steps 0..horizon, for a class or for the ranges of a family.

    Args:
        members: a finite class, or a batched LQG: the bound is over these plants alone; or a family: over its
            ranges, and it says nothing of finitely many of its members.
        horizon: last step; bounds by van Trees' inequality, which only ranges have, go to 1000.
        kinds: the bounds to try; each holds by itself, and fewer are found faster. All by default.
        ends: whether the task ends at the horizon; if not, the state left then counts.
    """
    horizon = read_count("horizon", horizon, least=0, most=MAX_HORIZON)
    if not isinstance(members, AbstractFamily):
        return _bound_class(Finite.of(members), _read_kinds(kinds, KINDS), horizon=horizon, ends=ends)
    kinds = _read_kinds(kinds, (*KINDS, *ranges.BOUNDS))
    some = members.members(spread_starts(members, jax.random.key(0))[:MAX_MEMBERS])
    usable = have_optimum(some.systems, horizon=horizon, ends=ends)
    if not np.any(usable):
        raise InvalidArgumentError(f"none of {len(usable)} plants of the ranges has an optimal controller")
    inside = _bound_class(some.subset(usable), kinds, horizon=horizon, ends=ends)
    own = [kind for kind in kinds if kind in ranges.BOUNDS]
    bound = ranges.bound_ranges(members, inside, horizon=horizon, ends=ends, kinds=own)
    if np.all(usable):
        return bound
    left_out = f"{np.sum(~usable)} of {len(usable)} plants tried have no optimal controller and are left out"
    return replace(bound, reasons=(*bound.reasons, left_out))


def _read_kinds(kinds: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    if kinds is None:
        return known
    for kind in read_list("kinds", kinds):
        require_one_of("kinds", kind, tuple(known))
    return kinds


def _bound_class(members: Finite, kinds: Sequence[str], *, horizon: int, ends: bool) -> LowerBound:
    systems, count = members.systems, len(members)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_MEMBERS)).round().astype(int))
    systems = take(systems, chosen)
    seen = Members(systems, references_of(systems, horizon=horizon, ends=ends))
    found = {"trivial": Found(0.0, np.full(len(chosen), 1 / len(chosen)), 0)}
    if len(chosen) > 1:
        asked = (bound for kind, bound in BOUNDS.items() if kind in kinds)
        rounding = ROUNDING * float(np.max(np.abs(seen.references.value)))
        found |= {bound.kind: _less(bound.bound(seen), rounding) for bound in asked if bound.applies(seen)}
    kind, best = max(found.items(), key=lambda item: item[1].value)
    prior = spread_prior(best.prior, chosen, count)
    heaviest = np.sort(np.argsort(-prior, kind="stable")[:2])
    pair = (int(heaviest[0]), int(heaviest[-1]))
    by_kind = {kind: bound.value for kind, bound in found.items()}
    return LowerBound(best.value, kind, pair, prior, best.num_steps, by_kind)


def _less(found: Found, rounding: float) -> Found:
    return eqx.tree_at(lambda bound: bound.value, found, max(found.value - rounding, 0.0))
