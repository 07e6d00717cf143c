"""`lqgap report`: the page of a finished run, made again from its record."""

from pathlib import Path

from lqgap.experiments.transfer import load_record
from lqgap.report import write


def run_report(folder: Path, *, figures: bool) -> None:
    """Write the page, and print what was written."""
    for path in write(load_record(folder), folder, figures=figures):
        print(path)
