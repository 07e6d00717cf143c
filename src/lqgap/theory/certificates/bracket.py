"""How good a policy is, as a factor: lower bound <= minimax gap <= worst gap of the policy.

The upper end is exact for linear policies. For others it is the largest of the members' upper confidence
limits, each of which fails with probability delta / N (`evaluation.estimate`), so that the confidence
1 - delta holds for all members at once. Where the tail of the gaps is heavy there is no such limit: the upper
end is infinite, and `doubt` says why. The lower end is no estimate: it holds up to rounding.
"""

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_key, read_probability
from lqgap.batches import take
from lqgap.evaluation import exact_gap, gap
from lqgap.evaluation.arguments import read_horizon, read_systems
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy
from lqgap.policies.limits import LimitsLike
from lqgap.simulators.finite import Members
from lqgap.theory.lower_bounds.minimax import LowerBound, minimax_lower_bound


class Certificate(eqx.Module):
    """No policy is better than `lower`; this one is, with confidence 1 - `delta`, no worse than `upper`."""

    bound: LowerBound
    gaps: Float[np.ndarray, " member"]
    stderr: Float[np.ndarray, " member"]  # zero where gaps are exact
    upper: float
    delta: float
    doubt: str = eqx.field(static=True, default="")  # why `upper` is infinite

    @property
    def lower(self) -> float:
        """What no policy can beat."""
        return self.bound.value

    @property
    def factor(self) -> float:
        """The policy's worst gap is at most this many times the best possible."""
        return self.upper / self.lower if self.lower > 0 else np.inf


def certify(
    policy: AbstractPolicy,
    members: Members,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    num_rollouts: IntLike = 1024,
    delta: FloatLike = 0.05,
    limits: LimitsLike = None,
    ends: bool = True,
) -> Certificate:
    """Bracket the minimax gap of a class between a lower bound and the worst gap of a policy.

    Args:
        members: a finite class, or a batched LQG.
        num_rollouts: of every member, if the policy is not linear.
        delta: the probability with which the upper end may fail.
        limits: (low, high) of the inputs; the lower end holds with and without them.
        ends: whether the task ends at the horizon; if not, the state left then counts.
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    systems = read_systems(policy, members)
    delta = read_probability("delta", delta)
    bound = minimax_lower_bound(systems, horizon=horizon, ends=ends)
    if isinstance(policy, AbstractLinearPolicy) and limits is None:
        plants = (take(systems, index) for index in range(len(systems.A)))
        gaps = np.asarray([float(exact_gap(policy, each, horizon=horizon, ends=ends)) for each in plants])
        return Certificate(bound, gaps, np.zeros_like(gaps), float(np.max(gaps)), delta)
    estimate = gap(
        policy, systems, horizon=horizon, key=key, num_rollouts=num_rollouts, limits=limits, ends=ends
    )
    upper = estimate.upper_limit(delta)
    return Certificate(bound, estimate.mean, estimate.stderr, upper, delta, estimate.doubt)
