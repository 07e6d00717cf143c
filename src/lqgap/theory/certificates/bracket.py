"""How good a policy is, as a factor: lower bound <= minimax gap <= worst gap of the policy.

Both ends are over the same plants: the members of a finite class, or the ranges of a family.

The lower end of a class is proved, up to rounding; that of ranges may rest on a quadrature, which is
computed, and seen to converge (`lower_bounds.ranges`).

The upper end of a class is exact for linear policies. For others it is the largest of the members' upper
confidence limits, each of which fails with probability delta / N (`evaluation.estimate`), so that the
confidence 1 - delta holds for all members at once. Over ranges, the members are those that a search found
(`evaluation.worst`): they are judged in the same way on noise that the search never saw, so that the choice
among them gains nothing. But a search is no proof that no member is worse: the upper end is that of the
largest gap found. Where the tail of the gaps is heavy there is no limit: the upper end is infinite, and
`doubt` says why.
"""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_count, read_key, read_probability
from lqgap.evaluation import exact_gap, find_worst, gap
from lqgap.evaluation.arguments import read_horizon, require_fit
from lqgap.evaluation.monte_carlo import MAX_ROLLOUTS
from lqgap.evaluation.worst import FRESH
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy
from lqgap.policies.limits import LimitsLike
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily
from lqgap.simulators.finite import Members
from lqgap.theory.lower_bounds.bound import LowerBound
from lqgap.theory.lower_bounds.minimax import minimax_lower_bound
from lqgap.theory.lower_bounds.ranges import RangesBound


class Certificate(eqx.Module):
    """No policy is better than `lower`; this one is, with `confidence`, no worse than `upper`.

    Over ranges, no worse than `upper` on the members that a search found.
    """

    bound: LowerBound | RangesBound
    members: Finite  # that gaps are of: the class, or what a search of the ranges found
    gaps: Float[np.ndarray, " member"]
    stderr: Float[np.ndarray, " member"]  # zero where gaps are exact
    upper: float
    delta: float
    doubt: str = eqx.field(static=True, default="")  # why `upper` is infinite

    @property
    def over(self) -> str:
        """What both ends are over: "class" or "ranges"."""
        return self.bound.over

    @property
    def lower(self) -> float:
        """What no policy can beat."""
        return self.bound.value

    @property
    def confidence(self) -> float:
        """With which both ends hold."""
        return self.bound.confidence - self.delta

    @property
    def factor(self) -> float:
        """The policy's worst gap is at most this many times the best possible."""
        return self.upper / self.lower if self.lower > 0 else np.inf

    def describe_worst(self) -> str:
        """The parameters of the member with the largest gap."""
        return self.members.describe(int(np.argmax(self.gaps)))


def certify(
    policy: AbstractPolicy,
    members: Members | AbstractFamily,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    num_rollouts: IntLike = 1024,
    delta: FloatLike = 0.05,
    limits: LimitsLike = None,
    ends: bool = True,
) -> Certificate:
    """Bracket the minimax gap of a class, or of ranges, between a lower bound and the worst gap of a policy.

    Args:
        members: a finite class, or a batched LQG: the bracket is over these plants; or a family: over its
            ranges, in which the worst gap is searched for.
        num_rollouts: of every member, if the policy is not linear; while a search goes on, a quarter of it.
        delta: the probability with which the upper end may fail.
        limits: (low, high) of the inputs; the lower end holds with and without them.
        ends: whether the task ends at the horizon; if not, the state left then counts.
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    delta = read_probability("delta", delta)
    num_rollouts = read_count("num_rollouts", num_rollouts, least=2, most=MAX_ROLLOUTS)
    task: dict[str, Any] = {"horizon": horizon, "ends": ends}
    if isinstance(members, AbstractFamily):
        few = max(2, num_rollouts // FRESH)
        found = find_worst(policy, members, key=key, num_rollouts=few, limits=limits, **task)
        judged = found.members
    else:
        found, judged = None, Finite.of(members)
        require_fit(policy, judged.systems)
    bound = minimax_lower_bound(members, **task)
    if isinstance(policy, AbstractLinearPolicy) and limits is None:
        gaps = np.asarray([float(exact_gap(policy, plant, **task)) for plant in judged])
        return Certificate(bound, judged, gaps, np.zeros_like(gaps), float(np.max(gaps)), delta)
    if found is None:
        estimate = gap(policy, judged, key=key, num_rollouts=num_rollouts, limits=limits, **task)
    else:
        estimate = found.gaps
    upper = estimate.upper_limit(delta)
    return Certificate(bound, judged, estimate.mean, estimate.stderr, upper, delta, estimate.doubt)
