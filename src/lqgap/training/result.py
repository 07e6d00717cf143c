"""The result of training: a policy, evaluated on fresh noise."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from lqgap.evaluation import GapEstimate, WorstFound
from lqgap.policies import AbstractPolicy
from lqgap.simulators import Finite

LEAST_IMPROVEMENT = 1e-3  # relative: less is rounding, or luck


class TrainingResult(eqx.Module):
    """The best policy seen, the adversary's mixture, and gaps on noise that training never saw."""

    policy: AbstractPolicy
    members: Finite  # of the class it was trained on, with those that the search added
    weights: Float[np.ndarray, " member"]  # the adversary's mixture, or the given distribution
    gaps: GapEstimate
    found: WorstFound  # by the last search over a family; else the members themselves
    history: tuple[dict[str, float], ...] = eqx.field(static=True)
    num_skipped: int = eqx.field(static=True)  # updates that blew up and were undone
    is_converged: bool = eqx.field(static=True)  # stopped by itself, before the steps were used up
    improvement: float = eqx.field(static=True)  # of the worst or mean gap, relative to that of the start
    returned: str = eqx.field(static=True, default="as trained")  # "as given" if all that was tried is worse
    compared: tuple[tuple[str, float], ...] = eqx.field(
        static=True, default=()
    )  # and their worst or mean gaps

    @property
    def has_improved(self) -> bool:
        """Whether training did not end where it began."""
        return self.improvement > LEAST_IMPROVEMENT

    @property
    def worst_gap(self) -> float:
        """The largest gap over the members, on fresh noise."""
        return self.gaps.worst

    @property
    def worst_in_ranges(self) -> float:
        """The largest gap over the members and what a search over the ranges found, on fresh noise."""
        return max(self.worst_gap, self.found.worst)

    @property
    def worst_interval(self) -> tuple[float, float]:
        """A 95 % interval of the largest gap; infinite where its tail allows none."""
        return self.gaps.worst_interval

    @property
    def mean_gap(self) -> float:
        """The mean gap under the mixture, an estimate of what this policy loses if the adversary draws.

        No policy has a smaller worst gap than the best answer to a mixture has mean gap under it. This policy
        is an answer that was searched for, not proved to be the best: its mean gap is no lower bound.
        """
        return float(self.weights @ self.gaps.mean)

    @property
    def mean_stderr(self) -> float:
        """The standard error of the mean gap; all members meet the same noise."""
        totals = self.weights @ self.gaps.totals
        return float(np.std(totals, ddof=1) / np.sqrt(self.gaps.num_rollouts))

    @property
    def optimality(self) -> float:
        """Worst less mean gap: zero at a saddle point, training's own estimate of what is left to gain."""
        return self.worst_gap - self.mean_gap

    def describe_worst(self) -> str:
        """The parameters of the member with the largest gap."""
        return self.members.describe(self.gaps.argworst)

    def to_json(self) -> dict[str, Any]:
        """The evaluation as plain values."""
        low, high = self.worst_interval
        return {
            "worst_gap": self.worst_gap,
            "worst_interval": [low, high],
            "worst_in_ranges": self.worst_in_ranges,
            "worst_member": self.describe_worst(),
            "mean_gap": self.mean_gap,
            "mean_stderr": self.mean_stderr,
            "average_gap": self.gaps.average,
            "optimality": self.optimality,
            "num_members": len(self.members),
            "num_rollouts": self.gaps.num_rollouts,
            "num_skipped": self.num_skipped,
            "is_converged": self.is_converged,
            "improvement": self.improvement,
            "returned": self.returned,
            "compared": dict(self.compared),
        }
