"""Where in the ranges of a family a policy loses most: many looks, then more of them around the worst.

Between two rounds of training many members are looked at on the same noise, by forward passes alone: corners
and random ones at first, then some around the worst so far, nearer and nearer. (`evaluation.worst` climbs by
derivatives instead, from few starts.)
"""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array

from lqgap.evaluation.worst import spread_starts
from lqgap.progress import is_spent
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily

NUM_LOOKS = 256  # at a time: one program
NUM_CENTRES, NUM_KEPT = 16, 32
REACHES = (0.2, 0.05)  # of the looks around the worst, in units of the ranges
APART = 0.05  # how far from each other members are that are looked around or kept, in these units


def search_ranges(gaps_of: Callable[[Finite], np.ndarray], family: AbstractFamily, key: Array) -> Finite:
    """The members with the largest gaps that were looked at, the worst first."""
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    rows = np.concatenate([spread_starts(family, key), family.sample_parameters(key, NUM_LOOKS)])[:NUM_LOOKS]
    gaps = gaps_of(family.members(rows))
    for reach in REACHES:
        if is_spent():
            break
        worst = _worst_apart(family, rows, gaps, NUM_CENTRES)
        looks = _near(family, rows[np.resize(worst, NUM_LOOKS)], reach, random)
        rows = np.concatenate([rows, looks])
        gaps = np.concatenate([gaps, gaps_of(family.members(looks))])
    return family.members(rows[_worst_apart(family, rows, gaps, NUM_KEPT)])


def _worst_apart(family: AbstractFamily, rows: np.ndarray, gaps: np.ndarray, count: int) -> list[int]:
    """The numbers of the worst rows that lie apart from each other."""
    low, high = (np.array([getattr(p, end) for p in family.parameters]) for end in ("low", "high"))
    unit = (rows - low) / np.where(high > low, high - low, 1)
    chosen: list[int] = []
    for row in np.argsort(-gaps):
        if len(chosen) < count and np.all(np.linalg.norm(unit[chosen] - unit[row], axis=1) > APART):
            chosen.append(int(row))
    return chosen


def _near(
    family: AbstractFamily, centres: np.ndarray, reach: float, random: np.random.Generator
) -> np.ndarray:
    """One row near each centre, inside of the family and with the same choices."""
    low, high = (np.array([getattr(p, end) for p in family.parameters]) for end in ("low", "high"))
    is_free = np.array([not parameter.choices for parameter in family.parameters])
    moves = reach * (high - low) * is_free * random.normal(size=centres.shape)
    rows = np.clip(centres + moves, np.minimum(low, centres), np.maximum(high, centres))
    return np.where(family.is_inside(rows)[:, None], rows, centres)
