"""What a comparison of online methods found, as plain values: runs, their means, and who is best where.

A record is JSON and back without loss, and is no more than what `adaptive.compare` measured. Excess is what a
run costs above the optimal controller of its plant over steps 0..horizon.
"""

import math
from typing import Any

from scipy.stats import t as student

from lqgap.experiments.record import Kind, Number, Part

FORMAT = 1
ROUNDING = 1e-6  # relative, of the excess of two methods that do the same
TIE = 0.95  # confidence with which one method must be better than another that is not its equal


class Contender(Part):
    """A method with the options it has here."""

    name: str  # with its options, as it was asked for
    label: str
    kind: Kind
    description: str


class ClassOfPlants(Part):
    """A class, and the members that were true."""

    name: str
    num_members: int
    truths: dict[str, str]  # the parameters of each, by what it is: middle, lowest J, ..
    is_limited: bool = False  # whether its inputs are


class OnlineRun(Part):
    """A run."""

    truth: str
    member: int
    seed: int
    excess: Number
    switches: int
    stopped: int  # steps in which the observations fitted no member
    faults: int  # samples that were absurd and counted as lost
    is_warming: bool  # at the end: it has not begun to control
    diverged_at: int | None


class Cell(Part):
    """The runs of a method on a class over a horizon, and the mean excess of those that held."""

    family: str
    method: str
    horizon: int
    optimum: Number  # J, mean over the truths
    runs: list[OnlineRun]
    mean: Number
    stderr: Number
    seconds_per_step: Number
    steps: list[int]
    growth: list[Number]  # the mean at these steps
    growth_stderr: list[Number]

    @property
    def num_diverged(self) -> int:
        """How many runs did."""
        return sum(run.diverged_at is not None for run in self.runs)

    @property
    def num_warming(self) -> int:
        """How many were still warming up at the end."""
        return sum(run.is_warming for run in self.runs)

    @property
    def num_seeds(self) -> int:
        """Runs on each truth."""
        return len({run.seed for run in self.runs})

    @property
    def half(self) -> float:
        """Half of the 95 % interval of the mean."""
        return float(student.ppf(0.975, self.num_seeds - 1)) * self.stderr

    @property
    def switches(self) -> float:
        """Mean number of switches."""
        return sum(run.switches for run in self.runs) / len(self.runs)

    @property
    def median(self) -> float:
        """Of the runs that held."""
        held = sorted(run.excess for run in self.runs if run.diverged_at is None)
        return held[len(held) // 2] if held else math.nan

    @property
    def worst(self) -> float:
        """The largest mean on one truth, of the runs that held there: what robust training is for."""
        by_truth: dict[str, list[float]] = {run.truth: [] for run in self.runs}
        for run in self.runs:
            if run.diverged_at is None:
                by_truth[run.truth].append(run.excess)
        means = [sum(each) / len(each) if each else math.nan for each in by_truth.values()]
        return math.nan if any(map(math.isnan, means)) else max(means)

    def excess_by(self, step: int) -> float:
        """The mean at the last step shown that is not after this one."""
        return next(
            (value for at, value in zip(self.steps[::-1], self.growth[::-1], strict=True) if at <= step), 0.0
        )


class LeftOut(Part):
    """A method that could not be run on a class, and why."""

    family: str
    method: str
    reason: str


class Comparison(Part):
    """All of it."""

    format: int = FORMAT
    methods: list[Contender]
    families: list[ClassOfPlants]
    horizons: list[int]
    seeds: list[int]
    cells: list[Cell]
    left_out: list[LeftOut]

    @property
    def title(self) -> str:
        """What the page is headed by."""
        return "Online methods compared"

    @property
    def warnings(self) -> list[str]:
        """Who was left out, and what excess is above where inputs are limited."""
        labels = {method.name: method.label for method in self.methods}
        left_out = [
            f"{labels[each.method]} is left out on {each.family}: {each.reason}" for each in self.left_out
        ]
        return left_out + [
            f"Inputs of {each.name} are limited: plans, and the optimum that excess is above, are those "
            f"without limits."
            for each in self.families
            if each.is_limited
        ]

    def contender(self, name: str) -> Contender:
        """A method by its name."""
        return next(method for method in self.methods if method.name == name)

    def at(self, family: str, horizon: int) -> list[Cell]:
        """All methods on a class over a horizon, best first; last who only warmed up, or diverged."""
        found = [cell for cell in self.cells if (cell.family, cell.horizon) == (family, horizon)]
        return sorted(found, key=lambda c: (c.num_diverged, c.num_warming, math.isnan(c.mean), c.mean))

    def records(self) -> list[dict[str, Any]]:
        """A row for every run, as `pandas.DataFrame` takes them."""
        return [
            {
                "family": cell.family,
                "method": cell.method,
                "horizon": cell.horizon,
                **run.model_dump(),
                "optimum": cell.optimum,
                "seconds_per_step": cell.seconds_per_step,
            }
            for cell in self.cells
            for run in cell.runs
        ]

    def summary(self) -> list[dict[str, Any]]:
        """A row for every method, class and horizon."""
        return [
            {
                "family": cell.family,
                "method": cell.method,
                "horizon": cell.horizon,
                "excess": cell.mean,
                "half": cell.half,
                "worst": cell.worst,
                "median": cell.median,
                "share": cell.mean / (cell.optimum * (cell.horizon + 1)),
                "switches": cell.switches,
                "diverged": cell.num_diverged,
                "warming": cell.num_warming,
                "runs": len(cell.runs),
                "seconds_per_step": cell.seconds_per_step,
            }
            for cell in self.cells
        ]


def equals(cells: list[Cell]) -> list[Cell]:
    """The first and those that are not clearly worse than it, on the noise that they have in common."""
    best = cells[0]
    return [cell for cell in cells if cell is best or (not cell.num_diverged and not _is_worse(cell, best))]


def _is_worse(cell: Cell, best: Cell) -> bool:
    """By the differences of their runs, averaged over the truths of each seed; or by their signs.

    Where a few runs carry a mean its error is as large as itself, and only the signs can tell.
    """
    if best.num_diverged or math.isnan(cell.mean) or cell.num_warming > best.num_warming:
        return True
    theirs = {(run.truth, run.seed): run.excess for run in best.runs}
    by_seed: dict[int, list[float]] = {}
    for run in cell.runs:
        by_seed.setdefault(run.seed, []).append(run.excess - theirs[run.truth, run.seed])
    gaps = [sum(each) / len(each) for each in by_seed.values()]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    margin = float(student.ppf(TIE, len(gaps) - 1)) * math.sqrt(variance / len(gaps))
    nothing = ROUNDING * abs(best.mean)
    is_always = min(gaps) > nothing and 0.5 ** len(gaps) < 1 - TIE
    return is_always or mean > max(margin, nothing)
