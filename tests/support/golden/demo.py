"""What README.md shows of the demo: its record without curves and single plants, and the table made of it.

`make demo && .venv/bin/python tests/support/golden/demo.py` makes `demo.json` and the README's table anew.
"""

import re
import sys
from pathlib import Path

from lqgap.experiments.record import Record
from lqgap.report.numbers import show_estimate

GOLDEN = Path(__file__).with_suffix(".json")
README = Path(__file__).parents[3] / "README.md"
HEADER = "| method | worst, ranges | worst, class | worst, real | mean, real |\n|---|---:|---:|---:|---:|\n"
LEFT_OUT = {
    "real": [],
    "audit": None,
    "horizons": None,
    "heat_map": None,
    "trajectories": None,
    "responses": [],
}
LEFT_OUT |= {"adaptations": None, "bounds": None, "timings": {}, "versions": {}}


def strip(record):
    """What the table and the sentences need."""
    gaps = [each.model_copy(update={"real": []}) for each in record.gaps.methods]
    methods = [each.model_copy(update={"history": [], "margins": []}) for each in record.methods]
    changes = {"gaps": record.gaps.model_copy(update={"methods": gaps}), "methods": methods}
    return record.model_copy(update=LEFT_OUT | changes)


def table(record):
    """The gap table in Markdown."""
    rows = []
    for gaps in record.gaps.methods:
        method = record.method(gaps.method)
        cells = (gaps.box_worst, gaps.grid_worst, gaps.real_worst, gaps.real_mean)
        label = method.label + (" (unfit)" if method.unfit else "")
        rows.append(f"| {label} | {' | '.join(map(show_estimate, cells))} |\n")
    return HEADER + "".join(rows)


if __name__ == "__main__":
    found = strip(Record.model_validate_json(Path(*sys.argv[1:] or ["demo/record.json"]).read_text()))
    GOLDEN.write_text(found.model_dump_json(indent=1) + "\n")
    README.write_text(re.sub(re.escape(HEADER) + r"(\|.*\n)*", table(found), README.read_text()))
