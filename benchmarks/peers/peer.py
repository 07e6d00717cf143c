"""What the comparisons share: names with versions, ratios, what is not there, and who is how fast."""

import importlib
import importlib.metadata
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
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


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What is returned, and the wall time or the CPU time of all threads, whichever is shorter.

    On a machine that others use a long call waits for its turn while a short one slips through.
    """
    start = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(call())
    return result, min(time.perf_counter() - start[0], time.process_time() - start[1])


def seconds(call: Callable[[], Any], *, rounds: int | None = None) -> float:
    """The shortest of several rounds, at the best number of BLAS threads: one, or as many as cores."""
    times = []
    for threads in {1, os.cpu_count() or 1}:
        with threadpoolctl.threadpool_limits(threads):
            times += [timed(call)[1] for _ in range(rounds or ROUNDS)]
    return min(times)


def duration(seconds: float) -> str:
    """With a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def ratio(theirs: float, ours: float) -> str:
    """How many times ours, of what is better if smaller; said plainly where we lose."""
    times = f"{theirs / ours:.3g}x"
    return times if theirs >= ours else f"**{times}: we lose**"


def section(topic: str, title: str, note: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that tells the command it is made by."""
    return timing.table(f"Peers: {title}", f"{note} `{COMMAND} {topic}`", header, rows)
