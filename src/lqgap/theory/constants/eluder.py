"""The Eluder dimension of a class of functions: bounds from above, and sequences that show it from below.

z is eps-independent of z_1..z_k if some pair f, g of the class has

    sum_i (f - g)^2(z_i) <= eps^2   and   |f - g|(z) > eps .

dim_E(eps) is the length of the longest sequence each of whose points is eps'-independent of those before it,
for one eps' >= eps. With the strict inequality a pair that has witnessed once has spent its eps'^2, so

    dim_E <= N(N-1)/2    of N functions
    dim_E <= N - 1       if one function of each pair is the truth, which is all that regret needs

and for functions <theta, phi> with phi in R^d, ||theta|| <= scale, ||phi|| <= radius (Osband, Van Roy 2014)

    dim_E(eps) <= 3 d e / (e-1) log(3 + 3 (2 scale radius / eps)^2) + 1 .

A greedy search finds long sequences among given samples: it is a lower bound for the class on these samples.
"""

import math

import numpy as np
from jaxtyping import Float

NUM_SCALES = 12  # values of eps' that the greedy search tries


def linear_eluder_bound(*, dimension: int, scale: float, radius: float, epsilon: float) -> float:
    """dim_E of functions that are linear in features, from above."""
    log_ratio = math.log(2) + math.log(scale) + math.log(radius) - math.log(epsilon)  # may be beyond 1e154
    logarithm = float(np.logaddexp(math.log(3), math.log(3) + 2 * log_ratio))
    return 3 * dimension * math.e / (math.e - 1) * logarithm + 1


def greedy_eluder_sequence(values: Float[np.ndarray, "function sample"], *, epsilon: float) -> list[int]:
    """The numbers of samples, each independent of those before it for one eps' >= epsilon."""
    first, second = np.triu_indices(len(values), k=1)
    distances = np.abs(values[first] - values[second])  # a row for each pair
    largest = np.max(distances, initial=0.0)
    if largest <= epsilon:
        return []
    scales = np.geomspace(epsilon, largest, NUM_SCALES, endpoint=False)
    return max((_greedy(distances, scale) for scale in scales), key=len)


def _greedy(distances: np.ndarray, epsilon: float) -> list[int]:
    """Always the sample that is independent and leaves the most pairs able to witness."""
    spent, squares, sequence = np.zeros(len(distances)), distances**2, []
    while True:
        able = spent <= epsilon**2
        independent = np.any(able[:, None] & (distances > epsilon), axis=0)
        if not np.any(independent):
            return sequence
        remaining = np.sum(spent[:, None] + squares <= epsilon**2, axis=0)
        sample = int(np.argmax(np.where(independent, remaining, -1)))
        sequence.append(sample)
        spent += squares[:, sample]
