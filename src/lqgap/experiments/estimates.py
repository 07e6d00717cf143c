"""From what rollouts say of plants to values of a record: of each, of the worst, of their mean."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lqgap.evaluation import GapEstimate
from lqgap.evaluation.estimate import QUANTILES, AbstractEstimate, have_light_tails
from lqgap.experiments.record import Estimate


def exact(mean: float) -> Estimate:
    """A value that was computed, not estimated."""
    return Estimate(mean=mean, stderr=0.0, low=mean, high=mean)


def of_each(found: AbstractEstimate) -> list[Estimate]:
    """The estimates of all plants, in order."""
    rows = zip(found.mean, found.stderr, found.interval, found.quantiles, found.share_diverged, strict=True)
    return [_estimate(*row) for row in rows]


def of_worst(found: AbstractEstimate) -> Estimate:
    """The largest mean, and the largest quantiles and share of any plant."""
    return _estimate(
        found.worst,
        found.worst_stderr,
        found.worst_interval,
        np.max(found.quantiles, axis=0),
        np.max(found.share_diverged),
    )


def joined(parts: Sequence[GapEstimate], count: int | None = None) -> GapEstimate:
    """The first `count` plants of several batches of them, or all."""
    fields = ("mean", "stderr", "totals", "per_step", "value")
    rows: dict[str, Any] = {
        field: np.concatenate([getattr(part, field) for part in parts])[:count] for field in fields
    }
    tail = have_light_tails(rows["totals"])
    return GapEstimate(**rows, num_rollouts=parts[0].num_rollouts, has_light_tail=tail)


def argworst(found: AbstractEstimate) -> int:
    """The plant with the largest mean, or where that cannot be known with the largest upper quantile."""
    return found.argworst if found.has_light_tail else int(np.argmax(found.quantiles[:, -1]))


def of_mean(found: AbstractEstimate) -> Estimate:
    """The mean over plants; quantiles and shares are those of the runs of all plants together."""
    quantiles = np.quantile(found.totals, QUANTILES, method="inverted_cdf")
    average = found.averaged()
    return _estimate(
        average.mean[0],
        average.stderr[0],
        average.interval[0],
        quantiles,
        float(np.mean(found.share_diverged)),
    )


def of_runs(totals: np.ndarray) -> Estimate:
    """The mean of single runs, without a claim about its tail."""
    return Estimate(mean=float(np.mean(totals)), stderr=float(np.std(totals, ddof=1) / np.sqrt(len(totals))))


def _estimate(mean: float, stderr: float, interval: Any, quantiles: np.ndarray, diverged: float) -> Estimate:
    low, high = (float(end) if np.all(np.isfinite(interval)) else None for end in interval)
    median, most = map(float, quantiles)
    return Estimate(
        mean=float(mean),
        stderr=float(stderr),
        low=low,
        high=high,
        median=median,
        most=most,
        diverged=float(diverged),
    )
