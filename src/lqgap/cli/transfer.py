"""`lqgap transfer`: the main job, its answer as a table or JSON."""

import functools
import json
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lqgap.cli.session import Progress, finish, new_table, open_study, prepare_jax, printable, shown
from lqgap.errors import NotConvergedError
from lqgap.experiments.record import Record
from lqgap.experiments.transfer import transfer
from lqgap.report import write, write_figures
from lqgap.report.answer import answer
from lqgap.report.numbers import explain_ranges, is_range, show_estimate


def run_transfer(
    path: Path | None,
    folder: Path,
    *,
    seed: int | None,
    trust: bool,
    as_json: bool,
    figures: bool,
    progress: Progress,
    quick: bool = False,
) -> None:
    """Compute the record in a folder, print it, and write its page."""
    prepare_jax()
    study, source = open_study(path, seed=seed)
    if quick:
        study = study.quick()
        progress.notice("a first look: without training, online learning and bounds")

    record = transfer(
        study,
        source,
        folder,
        trust=trust,
        progress=progress,
        notice=progress.notice,
        show=functools.partial(_show, folder, progress, as_json),
    )
    if os.access(folder, os.W_OK):
        write_fn = functools.partial(_write_page, record, folder, as_json)
        finish(write_fn, *([functools.partial(write_figures, record, folder)] if figures else []))
    else:  # a finished run is shown all the same
        progress.notice(f"{folder} cannot be written to: there is no new page")
    if record.recommended is None and any(method.unfit for method in record.methods):
        raise NotConvergedError(answer(record).text)


def print_record(record: Record, folder: Path) -> None:
    """The answer in a sentence, the gaps of all methods, and what to be careful about."""
    console = Console()
    if record.gaps is not None:
        console.print(_gap_table(record))
        if any(map(is_range, (gaps.real_worst for gaps in record.gaps.methods))):
            console.print(explain_ranges(record.gaps.num_rollouts), highlight=False, soft_wrap=True)
    console.print(shown(answer(record).text), highlight=False, soft_wrap=True)
    if record.recommended is not None and (file := record.method(record.recommended).policy_file):
        console.print(shown(f"Policy: {folder / file}"), highlight=False, soft_wrap=True)
    for warning in record.warnings:
        console.print(f"[yellow]warning:[/] {shown(warning)}", highlight=False, soft_wrap=True)


def _show(folder: Path, progress: Progress, as_json: bool, record: Record, is_whole: bool) -> None:
    if not as_json:
        print_record(record, folder)
    elif is_whole:
        print(json.dumps(record.model_dump(mode="json"), indent=1))  # in ASCII, which any output can write
    if not (as_json or is_whole):
        progress.notice("the bounds are still to come; then the table is printed once more")


def _write_page(record: Record, folder: Path, as_json: bool) -> None:
    page, *_ = write(record, folder)
    if not as_json:
        print(f"Report: {printable(str(page))}")


def _gap_table(record: Record) -> Table:
    headings = (">worst, ranges", ">worst, class", ">worst, real", ">mean, real")
    table = new_table(f"Gap by method: {record.title}", "method", *headings)
    for gaps in record.gaps.methods if record.gaps else ():
        is_best, method = gaps.method == record.recommended, record.method(gaps.method)
        cells = (gaps.box_worst, gaps.grid_worst, gaps.real_worst, gaps.real_mean)
        table.add_row(
            shown(method.label) + (" [red](unfit)[/]" if method.unfit else "") + " (cut)" * method.cut,
            *(show_estimate(cell) if cell else "-" for cell in cells),
            style="bold" if is_best else None,
        )
    for left_out in record.left_out:
        table.add_row(shown(left_out.label), "left out")
    return table
