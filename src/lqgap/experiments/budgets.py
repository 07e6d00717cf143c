"""The time that the units of work of a study may take.

A study's `budget` is shared out among class growth, training, gaps and lower bound; if it is left out, the
shares follow from the task. A unit that is cut returns the best that it holds, and says so.
"""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

from lqgap.errors import warn
from lqgap.experiments.plants import Plants
from lqgap.progress import SECONDS, Budget, read_time, time_budget, track

SHARES = {"class": 2, "train": 3, "gaps": 2, "lower bound": 4}  # of a unit whose name begins so
SHARE, SHARE_OF_STEP = 30.0, 1 / 400  # seconds by default, and for every step and state of the plants
CUT = "{name} was cut by its budget of {seconds:.0f} s: its best result is used, and a larger one goes on"


def limit(plants: Plants, name: str) -> float:
    """The seconds that a unit may take."""
    shares = next((share for kind, share in SHARES.items() if name.startswith(kind)), math.inf)
    seconds = shares * _seconds_of_share(plants)
    return seconds if seconds == math.inf else float(math.ceil(seconds))


@contextlib.contextmanager
def allotted(plants: Plants, name: str, *, folder: Path | None = None) -> Iterator[Budget]:
    """Do a unit of work within its time, and tell how far it is.

    Args:
        folder: where it leaves what a larger budget goes on from.
    """
    seconds = limit(plants, name)
    with time_budget(seconds, folder=folder) as budget, track(name):
        yield budget
    if budget.is_cut:
        warn(CUT.format(name=name, seconds=seconds))


def _seconds_of_share(plants: Plants) -> float:
    study = plants.study
    if study.budget == "auto":
        return SHARE + SHARE_OF_STEP * study.horizon * plants.members.systems.num_states
    time = read_time(study.budget)
    if time is None:
        return math.inf
    kinds = [method.kind for method in study.methods.chosen.values()]
    count = SHARES["class"] + SHARES["lower bound"] + SHARES["gaps"] * len(kinds)
    return time[0] * SECONDS[time[1]] / (count + SHARES["train"] * kinds.count("trained"))
