"""A grid of studies: one row for each, computed by several processes or a Dask cluster, kept in a store.

Every combination of the values is a study of its own, and one unit of work: its methods are made and judged
on its class and its real plants. Processes compute; only the one that started them writes. A study that fails
is kept with its error and does not stop the others; it is tried again in the next sweep.
"""

import contextlib
import itertools
import json
import math
import tempfile
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lqgap.errors import InvalidArgumentError, LqgapError, StorageError, warn
from lqgap.experiments.parsing import Source, check_study
from lqgap.experiments.provenance import files_of
from lqgap.experiments.record import Estimate, Number, Part
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.study import Study
from lqgap.experiments.transfer import STORE
from lqgap.experiments.workers import Outcome, attempt, run_all
from lqgap.files import require_folder

MAX_STUDIES = 100_000
Progress = Callable[[int, int], None]  # how many of how many are done


class MethodRow(Part):
    """The gaps of a method in one study of a sweep."""

    worst_box: Estimate | None  # None where there is no map
    worst_class: Estimate | None
    worst_real: Estimate
    mean_real: Estimate
    optimal_cost_real: Number  # mean over the real plants


class Row(Part):
    """A study of a sweep: what was varied, and what came out."""

    varied: dict[str, Any]
    methods: dict[str, MethodRow]  # empty if it failed
    error: str | None


@dataclass(frozen=True)
class Task:
    """All that another process needs to know."""

    study: dict[str, Any]
    folder: str
    name: str
    trust: bool
    scratch: str  # a folder to work in, on the machine that the sweep was started on


def sweep(
    study: Study,
    source: Source,
    folder: str | Path,
    *,
    over: Mapping[str, Sequence[Any]],
    workers: Any = 2,
    trust: bool = False,
    progress: Progress | None = None,
    notice: Callable[[str], None] = warn,
) -> list[Row]:
    """The rows of all combinations, in order.

    Args:
        over: values by key, such as {"horizon": [50, 100], "methods.robust.steps": [30, 60]}.
        workers: the number of processes of this machine, or a client of `dask.distributed`.
        trust: whether studies may name a Python function.
        notice: told what a user should know, a line at a time.
    """
    from lqgap.experiments.family import require_trust  # which loads JAX

    studies = combine(study, source, over)
    for _, each in studies:
        require_trust(each.plant, source, trust=trust)
    store = Store(Path(folder) / STORE)
    units = [Unit("sweep", each.model_dump(exclude={"title"}), seed=each.seed) for _, each in studies]
    found = [_known(store, unit, source) for unit in units]
    missing = [i for i, known in enumerate(found) if known is None or known.error is not None]
    done = len(studies) - len(missing)
    if missing:
        require_folder(folder)
        if store.has_other_code():
            notice(f"{store.path} has results of another version of lqgap, which are kept, not used")
    with contextlib.ExitStack() as stack:
        if missing:
            stack.enter_context(store.kept_open())
        scratch = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        place = str(source.folder.resolve())
        tasks = [
            Task(studies[i][1].model_dump(exclude_none=True), place, source.name, trust, scratch)
            for i in missing
        ]
        is_local = isinstance(workers, int)
        outcomes = run_all(_timed, tasks, processes=workers) if is_local else _on_dask(workers, tasks)
        stack.callback(outcomes.close)  # workers end before what they work in is removed
        for outcome in outcomes:
            index = missing[outcome.index]
            answer, files, seconds = outcome.answer or (None, {}, 0.0)
            finished = Finished(answer, outcome.error, seconds)
            try:
                store.put(replace(units[index], files=files), finished)
            except StorageError as error:  # it is shown, and computed again by the next sweep
                finished = replace(finished, error=str(error))
            found[index] = finished
            done += 1
            if progress is not None:
                progress(done, len(studies))
    return [_row(varied, known) for (varied, _), known in zip(studies, found, strict=True)]


def read_over(items: Sequence[str]) -> dict[str, list[Any]]:
    """Values from texts as `horizon=50,100`; what is not a value of TOML is a text."""
    over: dict[str, list[Any]] = {}
    for item in items:
        key, equals, values = item.partition("=")
        key = key.strip()
        if not equals or not key or not values.strip():
            raise InvalidArgumentError(f"--over has {item!r}, expected key=value,value,...")
        if key in over:
            raise InvalidArgumentError(f"--over has the key {key} twice")
        over[key] = _read_values(values)
    return over


def combine(
    study: Study, source: Source, over: Mapping[str, Sequence[Any]]
) -> list[tuple[dict[str, Any], Study]]:
    """What is varied and the study, for every combination; all are checked before any is computed."""
    if not over:
        raise InvalidArgumentError("a sweep varies something: give at least one key with its values")
    count = math.prod(map(len, over.values()))
    if not 0 < count <= MAX_STUDIES:
        raise InvalidArgumentError(f"the sweep would have {count} studies, expected 1 to {MAX_STUDIES}")
    found = []
    for values in itertools.product(*over.values()):
        varied = dict(zip(over, values, strict=True))
        table = json.loads(json.dumps(study.model_dump(exclude_none=True)))
        for key, value in varied.items():
            _set(table, key, value)
        try:
            found.append((varied, check_study(table, Source(source.name, source.folder))))
        except LqgapError as error:
            shown = ", ".join(f"{key} = {value!r}" for key, value in varied.items())
            raise type(error)(f"with {shown}: {error}") from None
    return found


def measure(task: Task) -> tuple[dict[str, Any], dict[str, str]]:
    """By method a `MethodRow` in plain values; and the files that the plants were made from."""
    import lqgap
    from lqgap.experiments.pipeline import judge_methods, judge_plants, run_audit
    from lqgap.experiments.plants import Plants
    from lqgap.experiments.work import Work

    lqgap.enable_x64()  # a worker of a cluster has settings of its own
    study, source = Study.model_validate(task.study), Source(task.name, Path(task.folder))
    work, rows = Work(Plants(study, source, trust=task.trust)), {}
    scratch = task.scratch if Path(task.scratch).is_dir() else None
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        workspace, _ = run_audit(work, Path(folder))
        plants = judge_plants(work, workspace)
        costs = [plant.optimal_cost for plant in plants.real]
        for each in judge_methods(work, workspace, plants):
            found = each.judged.gaps
            row = MethodRow(
                worst_box=found.box_worst,
                worst_class=found.grid_worst,
                worst_real=found.real_worst,
                mean_real=found.real_mean,
                optimal_cost_real=sum(costs) / len(costs),
            )
            rows[each.name] = row.model_dump(mode="json")
    return rows, files_of(study, source)


def _timed(task: Task) -> tuple[dict[str, Any], dict[str, str], float]:
    start = time.perf_counter()
    return *measure(task), time.perf_counter() - start


def _on_dask(client: Any, tasks: Sequence[Task]) -> Generator[Outcome]:
    """The outcomes from a cluster, as they are ready; it tries again itself when a worker dies."""
    from distributed import as_completed

    if not tasks:
        return
    computing = partial(attempt, _timed)  # workers must not see an exception as their own trouble
    futures = client.map(computing, tasks, pure=False, retries=0)
    index = {future.key: number for number, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            if future.status == "finished":
                yield Outcome(index[future.key], *future.result())
            else:
                yield Outcome(index[future.key], None, " ".join(str(future.exception()).split()))
    finally:
        client.cancel(futures)


def _known(store: Store, unit: Unit, source: Source) -> Finished | None:
    current, _ = store.find(unit, source.folder)
    return None if current is None else store.get(current)


def _row(varied: Mapping[str, Any], known: Finished | None) -> Row:
    known = known or Finished(None, "it was not computed", 0.0)
    methods = {name: MethodRow.model_validate(row) for name, row in (known.result or {}).items()}
    return Row(varied=dict(varied), methods=methods, error=known.error)


def _read_values(text: str) -> list[Any]:
    try:
        return tomllib.loads(f"values = [{text}]")["values"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return [_read_value(part.strip()) for part in text.split(",")]


def _read_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _set(table: dict[str, Any], key: str, value: Any) -> None:
    """Set a value by a dotted key; tables on the way are made, and then judged like any other."""
    *path, last = key.split(".")
    for part in path:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise InvalidArgumentError(f"--over has the key {key}, but {part} is a value and no table")
        table = inner
    table[last] = value
