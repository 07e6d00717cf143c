"""All online methods on eight classes: excess, divergence and time a step, on common noise.

`python -m benchmarks.adaptive.compare 1000 10000` computes these horizons alone, and goes on where it was
stopped.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import lqgap as lg
from benchmarks.timing import table
from lqgap.experiments.comparison import Cell, Comparison
from lqgap.experiments.methods import METHODS

SEEDS = {1_000: 20, 10_000: 20, 100_000: 8}  # by horizon
VARIANTS = ("certainty{probing = 0.3}", "thompson{lazy = true}", 'vtr{preset = "as in the paper"}')
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lqgap" / "compare"


def run(horizons: Sequence[int] = tuple(SEEDS), *, processes: int = 2) -> str:
    """One table: a row for every class and method."""
    methods = [name for name, method in METHODS.items() if method.kind != "reference"]
    found = {
        horizon: lg.compare(
            [*methods, *VARIANTS],
            horizons=[horizon],
            seeds=SEEDS[horizon],
            folder=FOLDER,
            processes=processes,
            progress=lambda name, seconds: print(name, seconds, file=sys.stderr, flush=True),
        )
        for horizon in horizons
    }
    last = found[max(horizons)]
    rows = [
        [family.name, method.label, *_columns(found, family.name, method.name)]
        for family in last.families
        for method in last.methods
    ]
    counts = ", ".join(f"{SEEDS[horizon]} at {horizon:.0e}" for horizon in horizons)
    header = ["class", "method", *(f"excess, H = {horizon:.0e}" for horizon in horizons)]
    return table(
        "Online methods compared",
        "Excess over the optimal controller of the real plant with half of its 95 % interval, mean over "
        "truths: the middle member, those with the lowest and highest J. The noise is common to all methods; "
        f"seeds for each truth: {counts}. Times are of one run side by side with the others.",
        [*header, "diverged", "switches", "us a step"],
        rows,
    )


def _columns(found: dict[int, Comparison], family: str, method: str) -> list[str]:
    cells: list[Cell | None] = [
        next((cell for cell in each.cells if (cell.family, cell.method) == (family, method)), None)
        for each in found.values()
    ]
    last = cells[-1]
    if last is None:
        left_out = list(found.values())[-1].left_out
        reason = next(each.reason for each in left_out if (each.family, each.method) == (family, method))
        return [f"left out: {reason}", *[""] * (len(cells) + 2)]
    shown = ["" if cell is None else f"{cell.mean:.3g} +- {cell.half:.2g}" for cell in cells]
    diverged = sum(cell.num_diverged for cell in cells if cell is not None)
    count = sum(len(cell.runs) for cell in cells if cell is not None)
    return [
        *shown,
        f"{diverged} of {count}",
        f"{last.switches:.0f}",
        f"{1e6 * last.seconds_per_step:.1f}",
    ]


if __name__ == "__main__":
    lg.enable_x64()
    print(run([int(text) for text in sys.argv[1:]] or tuple(SEEDS)))
