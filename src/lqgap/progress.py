"""What long work is doing, on standard error, and the time that it may take.

Work that may take long is done inside of `track`. Every few seconds a line says how far it is, also where
standard error is a file and while nothing but the compiler runs; on a terminal the line is overwritten. Work
that can end early asks `is_spent` between its pieces, and then returns the best that it holds.
"""

import contextlib
import ctypes
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from lqgap.errors import InvalidArgumentError

SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
TIME = re.compile(rf" *([0-9.]+(?:[eE][-+]?[0-9]+)?) *({'|'.join(SECONDS)}) *")
IN_A_FILE, ON_A_TERMINAL = 8.0, 0.5  # seconds between two lines
CLEARED = "\r\x1b[2K"  # the line of a terminal


def read_time(text: str) -> tuple[float, str] | None:
    """The number and the unit of a time such as "2 min"; None for another text."""
    found = TIME.fullmatch(text)
    return (float(found[1]), found[2]) if found and found[1].count(".") < 2 and found[1] != "." else None


@dataclass
class Budget:
    """The time that some work may take, and whether the work was cut because it had passed."""

    seconds: float
    folder: Path | None = None  # where work that is cut leaves what a larger budget goes on from
    is_cut: bool = False
    begun: float = field(default_factory=time.monotonic)


@contextlib.contextmanager
def time_budget(time: str | float, *, folder: Path | None = None) -> Iterator[Budget]:
    """Let the work inside take about so long: bounds, searches and training then return the best they hold.

    Args:
        time: such as "2 min", or in seconds.
        folder: where bounds that are cut leave what a larger budget goes on from.
    """
    found = read_time(time) if isinstance(time, str) else (time, "s")
    if found is None or not isinstance(found[0], int | float) or not found[0] > 0:
        raise InvalidArgumentError(f"time is {time!r:.40}, expected seconds or a time such as '2 min'")
    budget = Budget(found[0] * SECONDS[found[1]], folder)
    token = _BUDGETS.set((*_BUDGETS.get(), budget))
    try:
        yield budget
    finally:
        _BUDGETS.reset(token)


def is_spent(share: float = 1.0) -> bool:
    """Whether this share of a budget has passed: whoever asks then stops, and its result counts as cut."""
    budgets, now = _BUDGETS.get(), time.monotonic()
    late = any(now - budget.begun > share * budget.seconds for budget in budgets)
    for budget in budgets:
        budget.is_cut |= late
    return late


def is_cut() -> bool:
    """Whether something was cut, of what goes on under a budget."""
    return any(budget.is_cut for budget in _BUDGETS.get())


def held_file(name: str) -> Path | None:
    """The file of what work of this name holds when it is cut; None where nothing is kept."""
    folders = [budget.folder for budget in _BUDGETS.get() if budget.folder is not None]
    return folders[-1] / f"{name}.safetensors" if folders else None


def release_memory(*, programs: bool = False) -> None:
    """Give back what compiling has left behind, which glibc keeps: most of a gigabyte.

    Args:
        programs: whether compiled programs go, too; those that are asked for again are compiled again.
    """
    if programs:
        sys.modules["jax"].clear_caches()
    with contextlib.suppress(OSError, AttributeError):  # on other systems
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@contextlib.contextmanager
def track(what: str, *, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A function that counts pieces of work, with a note: `advance(amount, note)`."""
    work = _Work(what, total)
    REPORTER.work.append(work)
    stop = threading.Event()
    if len(REPORTER.work) == 1:
        threading.Thread(target=REPORTER.watch, args=(stop,), daemon=True).start()
    try:
        yield work.advance
    finally:
        stop.set()
        REPORTER.work.remove(work)
        if REPORTER.is_shown:
            REPORTER.write("")


class Reporter:
    """Writes lines to standard error, and now and then one about the work that goes on."""

    def __init__(self) -> None:
        self.is_silent = self.is_shown = False  # at all; a line that is to be overwritten
        self.work: list[_Work] = []
        self.lock = threading.Lock()

    def write(self, line: str, *, stays: bool = True) -> None:
        """A line, which stays, or is overwritten by the next one."""
        if self.is_silent:
            return
        with self.lock, contextlib.suppress(OSError, ValueError):  # nobody can read it
            sys.stderr.write(CLEARED * self.is_shown + line + "\n" * (stays and line != ""))
            sys.stderr.flush()
            self.is_shown = not stays

    def watch(self, stop: threading.Event) -> None:
        """Say what goes on until it is over."""
        on_terminal = sys.stderr.isatty()
        while not stop.wait(ON_A_TERMINAL if on_terminal else IN_A_FILE):
            if work := list(self.work):
                told = ": ".join(map(str, (work[0], *work[1:][-1:])))
                line = f"  {told} ({time.monotonic() - work[0].begun:.0f} s)"
                self.write(line[:100] if on_terminal else line, stays=not on_terminal)


REPORTER = Reporter()
_BUDGETS: ContextVar[tuple[Budget, ...]] = ContextVar("budgets", default=())


@dataclass(eq=False)
class _Work:
    what: str
    total: int | None
    done: int = 0
    note: str = ""
    begun: float = field(default_factory=time.monotonic)

    def advance(self, amount: int, note: str = "") -> None:
        self.done, self.note = self.done + amount, note

    def __str__(self) -> str:
        count = "" if self.total is None else f" {self.done} of {self.total}"
        return f"{self.what}{count} {self.note}".strip()
