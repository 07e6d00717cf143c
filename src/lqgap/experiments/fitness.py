"""Whether a method may be put on a plant: nothing speaks against it on any plant that was tried.

A method is unfit if on some plant

    it diverges:     its gap is not finite, or above 100 times the optimal cost of that plant
    it is useless:   its gap is that of zero input, or surely above it

Both are judged wherever gaps are measured: on the class, the map and the real plants, at what a search of the
ranges finds, and over a run of many horizons.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

LARGE = 100.0  # times the optimal cost: no controller that holds a plant comes near it
SAME = 1e-6  # relative: the noise is common, so that equal inputs have equal gaps
NUM_STDERR = 2.0


def find_trouble(
    mean: Float[np.ndarray, " plant"],
    stderr: Float[np.ndarray, " plant"],
    value: Float[np.ndarray, " plant"],
    idle: Float[np.ndarray, " plant"],
    describe: Callable[[int], str],
) -> str | None:
    """What speaks against a method, with the plant where it is worst; None if nothing does.

    Args:
        value: optimal costs.
        idle: gaps of zero input.
        describe: names the plant of a number.
    """
    diverges = ~(mean <= LARGE * value)
    if np.any(diverges):
        worst = int(np.argmax(np.where(diverges, np.nan_to_num(mean / value, nan=np.inf), -np.inf)))
        return f"it diverges on {_count(diverges)}, such as {describe(worst)}"
    more = mean - idle
    useless = (more > NUM_STDERR * stderr) | ((np.abs(more) <= SAME * idle) & (idle > SAME * value))
    if np.any(useless):
        worst = int(np.argmax(np.where(useless, mean, -np.inf)))
        return f"no input at all is as good or better on {_count(useless)}, such as {describe(worst)}"
    return None


def _count(found: np.ndarray) -> str:
    return f"{int(np.sum(found))} of {len(found)} plants"
