"""What no policy can beat: a number below min over policies of max over members of the gap.

The largest bound of several kinds, each proved for every policy, adaptive, nonlinear or randomised, up to the
rounding of double precision:

    bayes       the best policy against a prior, if the member is revealed after a step or two  (`belief`)
    two-point   any two members that take time to be told apart                                (`two_point`)
    input-only  two members that differ in B alone                                             (`input_pair`)

The bound of members of a family holds for the family.
"""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Float

from lqgap.arguments import IntLike, read_count
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import MAX_HORIZON
from lqgap.evaluation.gap import references_of
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members as MembersLike
from lqgap.theory.lower_bounds.belief import Bayes
from lqgap.theory.lower_bounds.bound import AbstractLowerBound, Found, Members, spread_prior
from lqgap.theory.lower_bounds.input_pair import InputOnly
from lqgap.theory.lower_bounds.two_point import TwoPoint

BOUNDS: dict[str, AbstractLowerBound] = {bound.kind: bound for bound in (TwoPoint(), InputOnly(), Bayes())}
KINDS = tuple(BOUNDS)
MAX_MEMBERS = 32  # whose pairs are all looked at; of a larger class as many are taken, evenly


class LowerBound(eqx.Module):
    """No policy whatever has a smaller worst gap than `value`.

    It rests on the first `num_steps` steps, and on a prior over the members, of which `pair` are the two
    heaviest. `by_kind` has the largest bound of every kind that was tried.
    """

    value: float
    kind: str = eqx.field(static=True)
    pair: tuple[int, int] = eqx.field(static=True)
    prior: Float[np.ndarray, " member"]
    num_steps: int = eqx.field(static=True)
    by_kind: dict[str, float]


def minimax_lower_bound(
    members: MembersLike, *, horizon: IntLike, kinds: Sequence[str] = KINDS, ends: bool = True
) -> LowerBound:
    """The largest lower bound found for a class over steps 0..horizon.

    Args:
        members: a finite class, or a batched LQG.
        kinds: the bounds to try; each holds by itself, and fewer are found faster.
        ends: whether the task ends at the horizon; if not, the state left then counts.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidArgumentError(f"kinds has {kind!r}, expected some of {', '.join(KINDS)}")
    systems = Finite.of(members).systems
    horizon = read_count("horizon", horizon, least=0, most=MAX_HORIZON)
    count = len(systems.A)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_MEMBERS)).round().astype(int))
    systems = take(systems, chosen)
    seen = Members(systems, references_of(systems, horizon=horizon, ends=ends))
    found = {"trivial": Found(0.0, np.full(len(chosen), 1 / len(chosen)), 0)}
    if len(chosen) > 1:
        asked = (bound for kind, bound in BOUNDS.items() if kind in kinds)
        found |= {bound.kind: bound.bound(seen) for bound in asked if bound.applies(seen)}
    kind, best = max(found.items(), key=lambda item: item[1].value)
    prior = spread_prior(best.prior, chosen, count)
    heaviest = np.sort(np.argsort(-prior, kind="stable")[:2])
    pair = (int(heaviest[0]), int(heaviest[-1]))
    by_kind = {kind: bound.value for kind, bound in found.items()}
    return LowerBound(best.value, kind, pair, prior, best.num_steps, by_kind)
