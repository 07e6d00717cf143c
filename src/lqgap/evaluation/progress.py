"""Progress of long work, on standard error, and only where somebody watches."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def track(what: str, *, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function that advances a bar by so many units of work; silent if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.advance(task, amount)
