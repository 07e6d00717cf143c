"""How heavy the upper tail of a sample is: the shape k of the generalised Pareto law of its largest values,

    P(X - u > z | X > u) = (1 + k z / sigma)^(-1/k) ,

which has moments of order below 1/k: a variance for k < 1/2, a mean for k < 1. Totals of a linear loop are
quadratic forms of normal numbers, with k = 0; a policy that fails now and then has a large k.

The estimate is that of Zhang and Stephens (Technometrics 51, 2009) from the 3 sqrt(n) largest values, drawn a
little towards 1/2, as Vehtari et al. (JMLR 25, 2024) use it to tell whether a mean can be trusted.
"""

import math

import numpy as np
from jaxtyping import Float

FEWEST = 256  # values that a tail is judged by: what happens less often cannot be seen in fewer

_PRIOR = 10.0  # weight of k = 1/2, in values


def tail_index(sample: Float[np.ndarray, " value"]) -> float:
    """The shape k; infinite where only some values are, NaN of too few values."""
    if len(sample) < FEWEST:
        return math.nan
    largest = np.sort(sample)[-_num_largest(len(sample)) - 1 :]
    if largest[0] == largest[-1]:
        return -math.inf  # there is no tail
    above = largest[1:] - largest[0]
    if not np.isfinite(above[-1]) or above[len(above) // 4] == 0:
        return math.inf
    return (len(above) * _shape(above) + _PRIOR / 2) / (len(above) + _PRIOR)


def heaviest_index(num_values: int, num_samples: int) -> float:
    """The largest k with which means have intervals, if it is the largest of so many samples.

    Chosen by coverage (docs/decisions/0019): what chance adds to the largest of several is let pass.
    """
    chance = 1.5 - 0.65 * math.sqrt(math.log(num_samples))
    return 0.6 - chance / math.sqrt(_num_largest(num_values))


def _num_largest(num_values: int) -> int:
    return math.ceil(min(num_values / 5, 3 * math.sqrt(num_values)))


def _shape(above: Float[np.ndarray, " value"]) -> float:
    """The mean of k under the profile likelihood of b = -k / sigma, on a grid around a first guess."""
    count = len(above)
    size = 30 + math.isqrt(count)
    quartile = above[int(count / 4 + 0.5) - 1]
    grid = 1 / above[-1] + (1 - np.sqrt(size / (np.arange(1, size + 1) - 0.5))) / (3 * quartile)
    shapes = np.mean(np.log1p(-grid[:, None] * above), axis=1)
    log_likelihood = count * (np.log(-grid / shapes) - shapes - 1)
    weights = np.exp(log_likelihood - np.max(log_likelihood))
    return float(np.mean(np.log1p(-np.average(grid, weights=weights) * above)))
