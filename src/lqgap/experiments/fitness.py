"""Whether a method may be put on a plant: nothing speaks against it on any plant that was tried.

A method is unfit if on some plant

    it diverges:     a run, or all on average, cost more than 100 times the optimum
    it is useless:   its gap is that of zero input, or surely above it, where more than 5 % of the
                     optimum could be gained over zero input

Where inputs are limited there may be no controller that holds a plant: a load that drifts leaves their reach
in the end. Runs that the controller that knows the plant loses, too, within the same limits and on the same
noise, speak against no method, and are told as a warning; but where it loses most of them, nothing is fit.

Where the study asks for a set-point, a method that cannot follow one is unfit, too (`experiments.responses`).
All else is judged wherever gaps are measured: on the class, the map and the real plants, at what a search of
the ranges finds, and over a run of many horizons.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from lqgap.errors import warn
from lqgap.evaluation import GapEstimate
from lqgap.evaluation.estimate import DIVERGED

WORTHWHILE = 0.05  # of the optimal cost: where zero input loses less, to be no better than it is no fault
SAME = 1e-6  # relative: the noise is common, so that equal inputs have equal gaps
NUM_STDERR = 2.0
MOST = 0.5  # of the runs
TIGHT = (
    "the limits of inputs are tight: {where}, not even the controller that knows the plant holds it within "
    "them in all runs; wider limits, or smaller loads and noise, are needed there"
)

Lost = Bool[np.ndarray, " rollout"]


def find_trouble(
    found: GapEstimate,
    idle: Float[np.ndarray, " plant"],
    describe: Callable[[int], str],
    lost_anyway: Callable[[int], Lost] | None = None,
) -> str | None:
    """What speaks against a method, with the plant where it is worst; None if nothing does.

    Args:
        idle: gaps of zero input on the same plants and noise.
        describe: names the plant of a number.
        lost_anyway: runs of a plant that are lost by whoever knows it; none if left out.
    """
    lost = ~(found.totals <= DIVERGED * found.value[:, None])
    share = np.maximum(np.mean(lost, axis=1), ~(found.mean <= DIVERGED * found.value))
    where = find_guilty(share, lost, describe, lost_anyway)
    if where is not None:
        return f"it diverges {where}"
    more = found.mean - idle
    is_no_better = (np.abs(more) <= SAME * idle) | (more > NUM_STDERR * found.stderr)
    useless = is_no_better & (idle > WORTHWHILE * found.value)
    if np.any(useless):
        worst = int(np.argmax(np.where(useless, found.mean, -np.inf)))
        return f"no input at all is as good or better on {count_of(useless)}, such as {describe(worst)}"
    return None


def find_guilty(
    share: Float[np.ndarray, " plant"],
    lost: Bool[np.ndarray, "plant rollout"],
    describe: Callable[[int], str],
    lost_anyway: Callable[[int], Lost] | None,
) -> str | None:
    """On how many plants runs are lost, and one that speaks against the method; None if none does."""
    suspects = [int(row) for row in np.argsort(-share, kind="stable") if share[row] > 0]
    where = f"on {count_of(share > 0)}, such as "
    for row in suspects:
        anyway = lost_anyway(row) if lost_anyway and lost[row].any() else np.zeros_like(lost[row])
        if np.mean(anyway) > MOST:
            return f"{where}{describe(row)}; not even the controller that knows it holds it within the limits"
        if not lost[row].any() or np.any(lost[row] & ~anyway):
            return where + describe(row)
    if suspects:
        warn(TIGHT.format(where=where + describe(suspects[0])))
    return None


def count_of(found: np.ndarray) -> str:
    """How many of all plants, for people."""
    return f"{int(np.sum(found))} of {len(found)} plants"
