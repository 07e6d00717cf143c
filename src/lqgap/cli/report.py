"""`lqgap report`: the page of a finished run, made again from its record."""

import os
from pathlib import Path

from lqgap.experiments.transfer import load_record
from lqgap.report.page import figures_by_section, render

PAGE = "report.html"
FIGURES = "figures"


def write_report(folder: Path, *, figures: bool) -> list[Path]:
    """Write `report.html` into the folder of a run and, if asked for, PNG and SVG of every figure."""
    record = load_record(folder)
    page = folder / PAGE
    beside = folder / f".{PAGE}.{os.getpid()}"
    try:
        beside.write_text(render(record), encoding="utf-8")
        beside.replace(page)  # a reader never sees half a page
    finally:
        beside.unlink(missing_ok=True)
    if not figures:
        return [page]
    from lqgap.report.static import write_figures  # loads matplotlib

    sections = figures_by_section(record).values()
    return [page, *write_figures((figure for group in sections for figure in group), folder / FIGURES)]
