"""Work spread over processes; one that dies costs its own piece of work, which is tried again.

Processes are spawned, not forked, because JAX does not survive a fork. Each takes one piece at a time through
a pipe of its own, so that it is always known which process works on what. A process ends by itself when the
one that started it is gone. One with so many compiled programs that the system would soon refuse it
memory for more (Linux admits 65,530 pieces) is replaced by another.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lqgap.progress import REPORTER

MAX_TRIES = 3  # of a piece of work whose process dies
PARENT_CHECKED_EVERY = 0.5  # seconds
MAPS, MAX_MAPS = Path("/proc/self/maps"), 40_000  # pieces of memory: a compiled program takes dozens


@dataclass(frozen=True)
class Outcome:
    """What became of a piece of work: an answer, or why there is none."""

    index: int
    answer: Any
    error: str | None


def run_all(function: Callable[[Any], Any], items: Sequence[Any], *, processes: int) -> Generator[Outcome]:
    """Apply a function of a module to all items; outcomes come as they are ready.

    Closing the iterator, or an interrupt, ends all processes.
    """
    waiting, tries = deque(range(len(items))), [0] * len(items)
    workers: list[_Worker] = []
    try:
        workers.extend(_start(function) for _ in range(min(processes, len(items))))
        for _ in items:
            yield _next(function, items, workers, waiting, tries)
    finally:
        for worker in workers:
            _end(worker)


def attempt(function: Callable[[Any], Any], item: Any) -> tuple[Any, str | None]:
    """The answer and no error, or no answer and the error in a line; whatever goes wrong stays here."""
    try:
        return function(item), None
    except Exception as error:  # one piece that fails must not stop the others
        kind = type(error).__name__
        return None, " ".join(f"{kind}: {error}".split())


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Any  # a connection, of a type that depends on the system
    index: Any = None  # of the piece it works on


def _next(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    workers: "list[_Worker]",
    waiting: deque[int],
    tries: list[int],
) -> Outcome:
    """Keep everybody busy until a piece is done, or has failed too often."""
    while True:
        for worker in workers:
            if worker.index is None and waiting:
                worker.index = waiting.popleft()
                with contextlib.suppress(OSError):  # it is dead, which is noticed when its answer is due
                    worker.pipe.send(items[worker.index])
        busy = {worker.pipe: place for place, worker in enumerate(workers) if worker.index is not None}
        place = busy[wait(list(busy))[0]]
        worker, index = workers[place], workers[place].index
        try:
            (answer, error), is_full = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            worker.pipe.close()
            workers[place] = _start(function)
            tries[index] += 1
            if tries[index] < MAX_TRIES:
                waiting.appendleft(index)
                continue
            code = worker.process.exitcode
            return Outcome(index, None, f"its process died {MAX_TRIES} times (at last with code {code})")
        worker.index = None
        if is_full and waiting:
            _end(worker)
            workers[place] = _start(function)
        return Outcome(index, answer, error)


def _start(function: Callable[[Any], Any]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(function, theirs, os.getpid()), daemon=True)
    resource_tracker.ensure_running()  # its own start would let interrupts through again
    # Ctrl-C goes to workers, too, but it is we who decide when they end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return _Worker(process, ours)


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _serve(function: Callable[[Any], Any], pipe: Any, parent: int) -> None:
    REPORTER.is_silent = True
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # that process is gone
        while True:
            answer = attempt(function, pipe.recv())
            pipe.send((answer, MAPS.exists() and MAPS.read_bytes().count(b"\n") > MAX_MAPS))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECKED_EVERY)
    os._exit(1)
