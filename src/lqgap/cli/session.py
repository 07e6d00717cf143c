"""What the commands on studies share: the settings of JAX, the study, and progress on standard error."""

import json
import os
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lqgap.errors import InvalidArgumentError, LqgapError, did_you_mean
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod
from lqgap.experiments.parsing import Source, default_study, read_study
from lqgap.experiments.study import Study
from lqgap.progress import REPORTER

LONG = 1.0  # seconds: of a unit that takes less, only the begin is told


def prepare_jax() -> None:
    """Double precision, and programs that are compiled once and kept; before JAX is loaded.

    Processes that are started inherit it. Users may choose another place for programs, but no precision.
    """
    os.environ["JAX_ENABLE_X64"] = "1"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lqgap" / "jax"
    for name, value in {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
    }.items():
        os.environ.setdefault(name, value)
    require_device()


def require_device() -> None:
    """Raise if JAX cannot compute where a user has told it to."""
    if chosen := os.environ.get("JAX_PLATFORMS"):
        import jax

        try:
            jax.devices()
        except (RuntimeError, AssertionError):
            raise LqgapError(f"JAX_PLATFORMS is {chosen!r}, and JAX finds no such device") from None


def open_study(path: Path | None, *, seed: int | None = None) -> tuple[Study, Source]:
    """The study of a file, or the built-in one; with another seed, if one is given."""
    study, source = default_study() if path is None else read_study(path)
    return (study if seed is None else study.model_copy(update={"seed": seed})), source


def open_workspace(path: Path | None, *, seed: int | None, trust: bool) -> Any:
    """The plants of a study with the class audited; for commands that keep nothing but their output."""
    prepare_jax()
    study, source = open_study(path, seed=seed)

    from lqgap.experiments.pipeline import run_audit
    from lqgap.experiments.plants import Plants
    from lqgap.experiments.work import Work

    return run_audit(Work(Plants(study, source, trust=trust)), Path())[0]


def method_of(study: Study, name: str) -> AbstractMethod:
    """A method by its name: with the options that the study gives it, else with those it has by default."""
    if name not in METHODS:
        hint = did_you_mean(name, METHODS) or f"; there are {', '.join(METHODS)}"
        raise InvalidArgumentError(f"there is no method {name!r}{hint}")
    return study.methods.chosen.get(name) or METHODS[name]()


def print_rows(rows: list[dict[str, Any]], title: str, *, as_json: bool) -> None:
    """Rows of equal keys as a table, or as JSON."""
    if as_json:
        from lqgap.files import finite_or_text

        print(json.dumps(finite_or_text(rows), indent=2))
        return
    table = new_table(
        title, *(name if isinstance(value, str) else f">{name}" for name, value in rows[0].items())
    )
    for row in rows:
        table.add_row(*(shown(v) if isinstance(v, str) else f"{v:.4g}" for v in row.values()))
    Console().print(table)


def new_table(title: str, *headings: str, show_lines: bool = False) -> Table:
    """A table without rows; a heading that begins with ">" is that of numbers."""
    table = Table(title=shown(title), title_justify="left", show_lines=show_lines)
    for heading in headings:
        is_number = heading.startswith(">")
        table.add_column(shown(heading.removeprefix(">")), justify="right" if is_number else "left")
    return table


def finish(*parts: Callable[[], object]) -> None:
    """Print tables, then write files, all of them: each failure is a line, and the last is raised."""
    failure = None
    for part in parts:
        try:
            part()
        except (LqgapError, OSError) as error:
            if failure is not None:
                print_error(failure)
            failure = error
    if failure is not None:
        raise failure


def print_error(error: object) -> None:
    """An error in one line, which may repeat what a user gave, but not all of a long text."""
    print(f"error: {printable(str(error)):.1000}", file=sys.stderr)


def printable(text: str) -> str:
    """A text without what steers a terminal, on one line."""
    hidden = {"Cc", "Cf", "Zl", "Zp"}  # control, direction of writing, ends of lines
    return "".join(" " if unicodedata.category(letter) in hidden else letter for letter in text)


def shown(*lines: str) -> str:
    """Texts of a study or a file for tables, each on a line: as they are, and nothing more."""
    return "\n".join(escape(printable(line)) for line in lines)


class Progress:
    """Lines on standard error: what begins and what is left, what took long, what to know."""

    def __init__(self, *, verbose: bool, quiet: bool):
        self.is_verbose, self.told = verbose, ()
        REPORTER.is_silent = quiet

    def __call__(self, name: str, seconds: float | None, left: tuple[str, ...] = ()) -> None:
        """A unit begins (no seconds yet), or is done."""
        if seconds is None:
            ahead = f"; then {', '.join(left)}" if left and left != self.told else ""
            self.told = left
            self.say(f"begin {name}{ahead}")
        elif self.is_verbose or seconds >= LONG:
            self.say(f"done {name} {seconds:.1f} s")

    def say(self, text: str) -> None:
        """A line."""
        REPORTER.write(printable(text))

    def notice(self, text: str) -> None:
        """Something that a user should know, whether progress is shown or not."""
        self.say(f"note: {text}")
