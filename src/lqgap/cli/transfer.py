"""`lqgap transfer`: the main job, its answer as a table or JSON."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lqgap.cli.report import write_report
from lqgap.cli.session import Progress, open_study, prepare_jax
from lqgap.experiments.record import Estimate, Record
from lqgap.experiments.transfer import transfer


def run_transfer(
    path: Path | None, folder: Path, *, seed: int | None, trust: bool, as_json: bool, progress: Progress
) -> None:
    """Compute the record in a folder, print it, and write its page."""
    prepare_jax()
    study, source = open_study(path, seed=seed)
    record = transfer(study, source, folder, trust=trust, progress=progress)
    page, *_ = write_report(folder, figures=False)
    if as_json:
        print(record.model_dump_json(indent=1))  # noqa: T201
    else:
        print_record(record, folder)
        print(f"Report: {page}")  # noqa: T201


def print_record(record: Record, folder: Path) -> None:
    """The answer in a sentence, the gaps of all methods, and what to be careful about."""
    console = Console()
    if record.gaps is not None:
        console.print(_gap_table(record))
    console.print(escape(answer(record, folder)), highlight=False, soft_wrap=True)
    for warning in record.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False, soft_wrap=True)


def answer(record: Record, folder: Path) -> str:
    """Which policy to put on the plant, how far from optimal it can be, and what would be possible."""
    if record.recommended is None or record.gaps is None:
        return "no method was judged"
    method = record.method(record.recommended)
    gaps = next(part for part in record.gaps.methods if part.method == method.name)
    worst = gaps.box_worst or gaps.grid_worst
    where = "box" if gaps.box_worst else "class"
    text = f"Put {method.label.lower()} on the plant"
    if method.policy_file:
        text += f" ({folder / method.policy_file})"
    text += f": over the {where} it costs at most {_show(worst)} more than a controller that knows the plant"
    if record.bracket is not None:
        text += f"; no policy can promise less than {record.bracket.lower:.3g}"
    return f"{text} (steps 0..{record.gaps.horizon})."


def _gap_table(record: Record) -> Table:
    table = Table(title=escape(f"Gap by method: {record.title}"), title_justify="left")
    table.add_column("method")
    for column in ("worst, box", "worst, class", "worst, real", "mean, real"):
        table.add_column(column, justify="right")
    for gaps in record.gaps.methods if record.gaps else ():
        is_best = gaps.method == record.recommended
        cells = (gaps.box_worst, gaps.grid_worst, gaps.real_worst, gaps.real_mean)
        label = escape(record.method(gaps.method).label)
        table.add_row(label, *map(_show, cells), style="bold" if is_best else None)
    return table


def _show(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.mean:.4g}" + (f" ± {estimate.stderr:.2g}" if estimate.stderr else "")
