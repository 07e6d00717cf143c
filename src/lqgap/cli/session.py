"""What the commands on studies share: the settings of JAX, the study, and progress on standard error."""

import os
import sys
from pathlib import Path

from rich.console import Console

from lqgap.experiments.parsing import Source, default_study, read_study
from lqgap.experiments.study import Study


def prepare_jax() -> None:
    """Double precision, and programs that are compiled once and kept; before JAX is loaded.

    Processes that are started inherit it. Whoever has set these variables knows better.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lqgap" / "jax"
    for name, value in {
        "JAX_ENABLE_X64": "1",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
    }.items():
        os.environ.setdefault(name, value)


def open_study(path: Path | None, *, seed: int | None = None) -> tuple[Study, Source]:
    """The study of a file, or the built-in one; with another seed, if one is given."""
    study, source = default_study() if path is None else read_study(path)
    return (study if seed is None else study.model_copy(update={"seed": seed})), source


class Progress:
    """A line on standard error for every unit of work; nothing if nobody watches, unless it is asked for."""

    def __init__(self, *, verbose: bool, quiet: bool):
        self.console = Console(stderr=True)
        self.is_shown = not quiet and (verbose or sys.stderr.isatty())

    def __call__(self, name: str, seconds: float | None) -> None:
        """A unit begins (no seconds yet), or is done."""
        if self.is_shown and seconds is not None:
            self.say(f"[green]done[/] {name} [dim]{seconds:.1f} s[/]")

    def say(self, text: str) -> None:
        """A line, if somebody watches."""
        if self.is_shown:
            self.console.print(text, highlight=False)
