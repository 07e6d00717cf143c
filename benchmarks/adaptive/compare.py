"""All online methods on nine classes: excess, divergence and time a step, on common noise.

`python -m benchmarks.adaptive.compare` goes on where it was stopped, and puts its tables into
docs/benchmarks.md; with horizons as arguments it prints those of these alone.
"""

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import lqgap as lg
from benchmarks.timing import PAGE, put, table
from lqgap.experiments.comparison import Cell, Comparison, equals
from lqgap.experiments.contenders import read_classes
from lqgap.experiments.methods import METHODS
from lqgap.policies import Zero

HORIZONS, SEEDS = (1_000, 10_000, 100_000), 10
VARIANTS = ("certainty{probing = 0.3}", "thompson{lazy = true}", 'vtr{preset = "as in the paper"}')
LEARNER, ROBUST, TRAINED = "vtr", "robust", "trained"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lqgap" / "compare"


def run(horizons: Sequence[int] = HORIZONS, *, processes: int = 2) -> str:
    """Tables of excess over each horizon, of times, and of who pays how much less than whom."""
    methods = [name for name, method in METHODS.items() if method.kind != "reference"]
    found = lg.compare(
        [*methods, *VARIANTS],
        horizons=horizons,
        seeds=SEEDS,
        folder=FOLDER,
        processes=processes,
        progress=lambda name, seconds: print(name, seconds, file=sys.stderr, flush=True),
    )
    sections = [*(_excess(found, horizon) for horizon in found.horizons), _times(found), _shares(found)]
    return "\n".join([*sections, _robust(found)])


def _excess(found: Comparison, horizon: int) -> str:
    best = {family.name: equals(found.at(family.name, horizon)) for family in found.families}

    def shown(family: str, method: str) -> str:
        cell = _cell(found, family, method, horizon)
        if cell is None:
            return ""
        text = "" if math.isnan(cell.mean) else f"{cell.mean:.3g} ± {cell.half:.2g}"
        text = f"**{text}**" if cell in best[family] else text
        if cell.num_diverged:
            text = ", ".join(filter(None, [text, f"{cell.num_diverged} of {len(cell.runs)} diverge"]))
        return text

    names = [family.name for family in found.families]
    rows = [[method.label, *(shown(name, method.name) for name in names)] for method in found.methods]
    rows.append(["no input (exact)", *_idle(names, horizon)])
    note = (
        f"What {horizon:,} steps cost above the optimal controller of the real plant, with half of the 95 % "
        f"interval: mean over {len(found.seeds)} seeds and the truths, the middle member and those with the "
        "lowest and highest J, without runs that diverged. Noise is common to all methods; those not clearly "
        f"worse than the best are bold. {' '.join(found.warnings)}"
    )
    return table(f"Online methods: {horizon:,} steps", note.strip(), ["method", *map(_short, names)], rows)


def _idle(names: Sequence[str], horizon: int) -> list[str]:
    """(J_0 - J) (H + 1), J_0 the average cost without input: what learning has to be cheaper than."""
    cells = []
    for name, ground in read_classes(None).items():
        members = ground.members
        optima = members.optima()
        zero = Zero(num_inputs=members.systems.num_inputs, num_outputs=members.systems.num_outputs)
        rates = [
            lg.exact_average_cost(zero, members[index]) - float(optima.J[index])
            for index in lg.adaptive.compare.pick_truths(members).values()
        ]
        mean = sum(float(rate) for rate in rates) / len(rates)
        cells.append((name, f"{mean * (horizon + 1):.3g}" if math.isfinite(mean) else "unbounded"))
    return [text for name, text in cells if name in names]


def _times(found: Comparison) -> str:
    def shown(family: str, method: str) -> str:
        cells = [_cell(found, family, method, horizon) for horizon in found.horizons]
        times = [cell.seconds_per_step for cell in cells if cell is not None]
        return f"{1e6 * min(times):.1f}" if times else ""

    names = [family.name for family in found.families]
    rows = [[method.label, *(shown(name, method.name) for name in names)] for method in found.methods]
    return table(
        "Online methods: time a step",
        "Microseconds for a step of one run, side by side with those of all seeds and truths; the least "
        "disturbed of the horizons. In brackets the number of members.",
        ["method", *(f"{_short(family.name)} ({family.num_members})" for family in found.families)],
        rows,
    )


def _shares(found: Comparison) -> str:
    """What LQG-VTR pays as a share of what others pay."""
    rows = []
    for method in found.methods:
        if method.name == LEARNER:
            continue
        texts = []
        for horizon in found.horizons:
            shares = {
                _short(family.name): ours.mean / theirs.mean
                for family in found.families
                if (ours := _cell(found, family.name, LEARNER, horizon)) is not None
                and (theirs := _cell(found, family.name, method.name, horizon)) is not None
                and math.isfinite(theirs.mean)
            }
            texts.append(_range(shares))
        rows.append([method.label, *texts])
    note = "The mean excess of LQG-VTR over that of another method: the least and the most of all classes."
    return table(
        "Online methods: LQG-VTR against each",
        note,
        ["against", *(f"{horizon:,} steps" for horizon in found.horizons)],
        rows,
    )


def _robust(found: Comparison) -> str:
    """Robust training against the best of those that are not trained, in the mean and on the worst truth."""
    trained = {method.name for method in found.methods if method.kind == TRAINED}
    rows = []
    for family in found.families:
        cells = []
        for horizon in found.horizons:
            ours = _cell(found, family.name, ROBUST, horizon)
            others = [cell for cell in found.at(family.name, horizon) if cell.method not in trained]
            if ours is None or not others:
                cells.append("")
                continue
            worst = min(cell.worst for cell in others if not cell.num_diverged)
            label = found.contender(others[0].method).label
            cells.append(f"{ours.mean / others[0].mean:.2f} ({label}), {ours.worst / worst:.2f}")
        rows.append([_short(family.name), *cells])
    note = (
        "The mean excess of robust training over that of the best method without training, and the same on "
        "the worst truth: below one where knowing the class in advance pays. It is trained over 200 steps, "
        "on a class that holds the truth."
    )
    return table(
        "Online methods: robust training against the best of the others",
        note,
        ["class", *(f"{horizon:,} steps" for horizon in found.horizons)],
        rows,
    )


def _cell(found: Comparison, family: str, method: str, horizon: int) -> Cell | None:
    wanted = (family, method, horizon)
    return next((cell for cell in found.cells if (cell.family, cell.method, cell.horizon) == wanted), None)


def _short(name: str) -> str:
    """A class without its options: of these nine no two have the same name."""
    return name.partition("{")[0]


def _range(shares: dict[str, float]) -> str:
    if not shares:
        return ""
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    return f"{shares[low]:.2g} ({low}) to {shares[high]:.2g} ({high})"


if __name__ == "__main__":
    lg.enable_x64()
    chosen = [int(text) for text in sys.argv[1:]]
    text = run(chosen or HORIZONS)
    print(text)
    if not chosen:
        put(PAGE, text)
