"""What the comparisons share: names with versions, ratios, what is not there, and who is how fast."""

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import threadpoolctl

from benchmarks import timing

ROUNDS = 4
COMMAND = "python -m benchmarks.peers"


def name(distribution: str) -> str:
    """With its version, if it is installed."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return distribution


def absence(module: str) -> str:
    """Why it cannot be used; empty if it can."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        return "not installed" if error.name == module else f"cannot be imported: {error}"
    except ImportError as error:
        return f"cannot be imported: {error}"
    return ""


def absences(modules: Iterable[str]) -> dict[str, str]:
    """Those that cannot be used, and why."""
    return {module: reason for module in modules if (reason := absence(module))}


def seconds(call: Callable[[], Any], *, rounds: int | None = None) -> float:
    """At the best number of BLAS threads: one, or as many as there are cores."""
    best = float("inf")
    for threads in {1, os.cpu_count() or 1}:
        with threadpoolctl.threadpool_limits(threads):
            best = min(best, timing.seconds(call, rounds=rounds or ROUNDS))
    return best


def duration(time: float) -> str:
    """With a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time * 1e6:.3g} us"


def ratio(theirs: float, ours: float) -> str:
    """How many times ours, of what is better if smaller; said plainly where we lose."""
    times = f"{theirs / ours:.3g}x"
    return times if theirs >= ours else f"**{times}: we lose**"


def section(topic: str, title: str, note: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that tells the command it is made by."""
    return timing.table(f"Peers: {title}", f"{note} `{COMMAND} {topic}`", header, rows)
