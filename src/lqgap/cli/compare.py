"""`lqgap compare`: online methods against each other, as a table, JSON and a page."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lqgap.cli.session import Progress, finish, new_table, prepare_jax, printable, shown
from lqgap.errors import NotConvergedError
from lqgap.experiments.comparison import Cell, Comparison
from lqgap.report.comparison import verdict, write
from lqgap.report.numbers import show


def run_compare(
    families: Sequence[str],
    folder: Path,
    *,
    methods: Sequence[str],
    horizons: Sequence[int],
    seeds: int,
    processes: int,
    as_json: bool,
    progress: Progress,
) -> None:
    """Compute the comparison in a folder, print it, and write its page."""
    prepare_jax()

    from lqgap.experiments.compare import compare

    found = compare(
        methods or None,
        families or None,
        horizons,
        seeds,
        folder=folder,
        processes=processes,
        progress=progress,
        notice=progress.notice,
    )
    if as_json:
        text = json.dumps(found.model_dump(mode="json"), indent=1)  # in ASCII, which any output can write
        finish(lambda: print(text), lambda: write(found, folder))
    else:
        finish(lambda: _print(found), lambda: print(f"Page: {printable(str(write(found, folder)))}"))
    if not found.cells:
        raise NotConvergedError("no method could be run on any class")


def _print(found: Comparison) -> None:
    console = Console()
    for family in found.families:
        console.print(_table(found, family.name))
        console.print(shown(verdict(found, family.name)), highlight=False, soft_wrap=True)
    for each in found.left_out:
        line = f"{each.method} is left out on {each.family}: {each.reason}"
        console.print(f"[yellow]warning:[/] {shown(line)}", highlight=False, soft_wrap=True)


def _table(found: Comparison, family: str) -> Table:
    headings = [f">excess, {horizon} steps" for horizon in found.horizons]
    table = new_table(
        f"Online methods: {family}", "method", *headings, ">diverged", ">switches", ">µs a step"
    )
    cells = {(cell.method, cell.horizon): cell for cell in found.cells if cell.family == family}
    longest = found.at(family, max(found.horizons))
    for last in longest:
        row = [cells.get((last.method, horizon)) for horizon in found.horizons]
        table.add_row(
            shown(found.contender(last.method).label + (" (warm-up)" if last.num_warming else "")),
            *map(_excess, row),
            f"{last.num_diverged} of {len(last.runs)}",
            show(last.switches),
            show(1e6 * last.seconds_per_step, digits=2),
            style="bold" if last is longest[0] else None,
        )
    return table


def _excess(cell: Cell | None) -> str:
    return "-" if cell is None else f"{show(cell.mean)} ± {show(cell.half, digits=2)}"
