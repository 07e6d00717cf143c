"""`lqgap report`: the page of a finished run, made again from its record."""

from pathlib import Path

from lqgap.cli.session import finish
from lqgap.experiments.transfer import load_record
from lqgap.report import write, write_figures


def run_report(folder: Path, *, figures: bool) -> None:
    """Write the page, and print what was written."""
    record = load_record(folder)
    writers = [write, write_figures] if figures else [write]
    finish(*(lambda write_fn=write_fn: print(*write_fn(record, folder), sep="\n") for write_fn in writers))
