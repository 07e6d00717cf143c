"""Whether a method may be put on a plant: nothing speaks against it on any plant that was tried.

A method is unfit if on some plant

    it diverges:     a run, or all on average, cost more than 100 times the optimum
    it is useless:   its gap is that of zero input, or surely above it, where more than 5 % of the
                     optimum could be gained over zero input

Both are judged wherever gaps are measured: on the class, the map and the real plants, at what a search of the
ranges finds, and over a run of many horizons.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from lqgap.evaluation import GapEstimate
from lqgap.evaluation.estimate import DIVERGED

WORTHWHILE = 0.05  # of the optimal cost: where zero input loses less, to be no better than it is no fault
SAME = 1e-6  # relative: the noise is common, so that equal inputs have equal gaps
NUM_STDERR = 2.0


def find_trouble(
    found: GapEstimate, idle: Float[np.ndarray, " plant"], describe: Callable[[int], str]
) -> str | None:
    """What speaks against a method, with the plant where it is worst; None if nothing does.

    Args:
        idle: gaps of zero input on the same plants and noise.
        describe: names the plant of a number.
    """
    share = np.maximum(found.share_diverged, ~(found.mean <= DIVERGED * found.value))
    if np.any(share):
        worst = int(np.argmax(share))
        return f"it diverges on {_count(share > 0)}, such as {describe(worst)}"
    more = found.mean - idle
    is_no_better = (np.abs(more) <= SAME * idle) | (more > NUM_STDERR * found.stderr)
    useless = is_no_better & (idle > WORTHWHILE * found.value)
    if np.any(useless):
        worst = int(np.argmax(np.where(useless, found.mean, -np.inf)))
        return f"no input at all is as good or better on {_count(useless)}, such as {describe(worst)}"
    return None


def _count(found: np.ndarray) -> str:
    return f"{int(np.sum(found))} of {len(found)} plants"
