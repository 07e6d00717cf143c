"""Progress of long work, on standard error, and only where somebody watches."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def track(what: str, *, total: int | None) -> Iterator[Callable[..., None]]:
    """A function that advances a bar by so many units of work, with a note; silent if nobody watches."""
    if not sys.stderr.isatty():
        yield lambda amount, note="": None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def advance(amount: int, note: str = "") -> None:
            bar.update(task, advance=amount, description=f"{what} {note}".strip())

        yield advance
