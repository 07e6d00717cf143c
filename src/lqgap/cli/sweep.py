"""`lqgap sweep`: a table with a row for every study and method."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lqgap.cli.session import Progress, new_table, open_study, prepare_jax, shown
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.experiments.sweep import Row, read_over, sweep
from lqgap.report.numbers import show_estimate

COLUMNS = {
    "worst_box": ">worst, ranges",
    "worst_class": ">worst, class",
    "worst_real": ">worst, real",
    "mean_real": ">mean, real",
}


@dataclass(frozen=True)
class Where:
    """Where to compute: processes of this machine, a Dask cluster of them, or that of a scheduler."""

    processes: int
    scheduler: str | None
    dask_local: bool


def run_sweep(
    path: Path | None,
    folder: Path,
    *,
    over: Sequence[str],
    where: Where,
    trust: bool,
    as_json: bool,
    progress: Progress,
) -> None:
    """Compute all studies of a sweep and print their gaps."""
    prepare_jax()
    study, source = open_study(path)
    varied = read_over(over)

    def tell(done: int, total: int) -> None:
        progress.say(f"done {done} of {total}")

    with _client(where) as client:
        rows = sweep(
            study,
            source,
            folder,
            over=varied,
            workers=client or where.processes,
            trust=trust,
            progress=tell,
            notice=progress.notice,
        )
    if as_json:
        print(json.dumps([row.model_dump(mode="json") for row in rows], indent=1))
    else:
        Console().print(_table(rows))
    if failed := sum(row.error is not None for row in rows):
        raise NotConvergedError(f"{failed} of {len(rows)} studies failed; the next sweep tries them again")


@contextlib.contextmanager
def _client(where: Where) -> Iterator[Any]:
    """A client of the cluster that is asked for; None for processes of our own."""
    if where.scheduler is None and not where.dask_local:
        yield None
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InvalidArgumentError(
            "a Dask cluster needs the package distributed: pip install lqgap[dask]"
        ) from None
    if where.scheduler is not None:
        try:
            client = Client(where.scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(f"there is no Dask scheduler at {where.scheduler}: {error}") from None
        with client:
            yield client
        return
    with (
        LocalCluster(
            n_workers=where.processes, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _table(rows: Sequence[Row]) -> Table:
    table = new_table("Gaps of the sweep", *rows[0].varied, "method", *COLUMNS.values())
    for row in rows:
        varied = [shown(str(value)) for value in row.varied.values()]
        if row.error is not None:
            table.add_row(*varied, f"[red]failed[/] {shown(row.error)}")
        for name, gaps in row.methods.items():
            cells = [getattr(gaps, column) for column in COLUMNS]
            table.add_row(*varied, shown(name), *(show_estimate(cell) if cell else "-" for cell in cells))
    return table
