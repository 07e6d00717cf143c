"""Online methods against each other: any of the registry, on classes, over horizons, on common noise.

A method is told the class and the horizon and is made as in a study; a trained one is trained over its first
steps, and run as it is. What is computed is kept in a store at once, by method, class and horizon: a
comparison that was stopped goes on, one with more methods or horizons computes only these, and two in one
folder share the work. A method that fails on a class is left out there, with the reason.
"""

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lqgap import errors
from lqgap.adaptive.compare import Measured, measure, pick_truths, read_seeds
from lqgap.arguments import checked, read_count, read_list
from lqgap.errors import InvalidArgumentError, warn
from lqgap.experiments.comparison import Cell, ClassOfPlants, Comparison, Contender, LeftOut, OnlineRun
from lqgap.experiments.contenders import Families, Ground, Methods, read_classes, read_methods
from lqgap.experiments.methods.base import AbstractMethod, Knowing, Made, Setting
from lqgap.experiments.plants import key_for
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.transfer import STORE
from lqgap.experiments.workers import Outcome, attempt, run_all
from lqgap.files import read_path, require_folder
from lqgap.progress import track
from lqgap.states import fingerprint

TRAINED_STEPS = 200  # that a trained policy is trained over
MOST_SEEDS = 100_000
# What was computed, in how many seconds, and what is left.
Progress = Callable[[str, float | None, tuple[str, ...]], None]


@dataclass(frozen=True)
class Task:
    """All that another process needs to know: a method on a class, over the horizons that are missing."""

    family: str
    ground: Ground
    name: str
    method: AbstractMethod
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    truths: Mapping[str, int]
    folder: Path | None

    def checkpoints(self, horizon: int) -> Path | None:
        """Where its training over a horizon is kept, whatever it is then run on."""
        if self.folder is None:
            return None
        configuration = {key: self._configuration[key] for key in ("members", "limits", "method", "options")}
        return self.folder / "checkpoints" / Unit("train", configuration | {"horizon": horizon}, seed=0).key

    def unit(self, horizon: int) -> Unit:
        """What determines the result over a horizon."""
        return Unit("compare", self._configuration | {"horizon": horizon}, seed=self.seeds[0])

    @property
    def store(self) -> Store | None:
        """Where results are kept, if they are."""
        return None if self.folder is None else Store(self.folder / STORE)

    @property
    def _configuration(self) -> dict[str, Any]:
        return {
            "members": fingerprint(self.ground.members),
            "limits": None if self.ground.limits is None else fingerprint(self.ground.limits),
            "method": type(self.method).__name__,
            "options": self.method.model_dump(),
            "seeds": list(self.seeds),
            "truths": dict(self.truths),
        }


@checked
def compare(
    methods: Methods = None,
    families: Families = None,
    horizons: Sequence[int] = (1_000, 10_000),
    seeds: int | Sequence[int] = 20,
    *,
    folder: str | Path | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    notice: Callable[[str], None] = warn,
) -> Comparison:
    """Run methods on members of classes, all on the same noise.

    Args:
        methods: names, with options as "thompson{lazy = true}", or methods by name; by default all.
        families: names, with quantities and points as "dc_motor{points = 3}", files of studies, or families
            and classes by name; by default nine built-in ones.
        seeds: of the noise, or how many.
        folder: where results are kept, if they are.
        processes: that compute.
    """
    chosen, classes = read_methods(methods), read_classes(families)
    spans = sorted(
        {read_count("horizons", each, least=10, most=10_000_000) for each in read_list("horizons", horizons)}
    )
    if isinstance(seeds, int):
        seeds = range(read_count("seeds", seeds, least=2, most=MOST_SEEDS))
    numbers = read_seeds(read_list("seeds", seeds))
    processes = read_count("processes", processes, least=1, most=1_000)
    place = None if folder is None else read_path(folder)
    store = None if place is None else Store(place / STORE)
    truths = {family: pick_truths(ground.members) for family, ground in classes.items()}
    tasks = [
        Task(
            family,
            _with_arrays(ground, np.asarray),
            name,
            method,
            tuple(spans),
            numbers,
            truths[family],
            place,
        )
        for family, ground in classes.items()
        for name, method in chosen.items()
    ]
    cells = _known(tasks)
    missing = [_missing(task, cells) for task in tasks]
    missing = [task for task in missing if task.horizons]
    if missing and place is not None and store is not None:
        require_folder(place)
        if store.has_other_code():
            notice(f"{store.path} has results of another version of lqgap, which are kept, not used")
    left_out = []
    for outcome in _told(_outcomes(missing, processes), total=len(missing)):
        task = missing[outcome.index]
        if progress is not None:
            seconds = sum(each[1] for each in outcome.answer.values()) if outcome.answer else 0.0
            progress(f"{task.name} on {task.family}", seconds, ())
        if outcome.error is not None:
            left_out.append(LeftOut(family=task.family, method=task.name, reason=_reason(outcome.error)))
            cells |= _known([task])
            continue
        for horizon, (cell, _) in outcome.answer.items():
            cells[task.family, task.name, horizon] = Cell.model_validate(cell)
    order = [(task.family, task.name, span) for task in tasks for span in spans]
    return Comparison(
        methods=[
            Contender(name=name, label=_label(m), kind=m.kind, description=m.about)
            for name, m in chosen.items()
        ],
        families=[
            ClassOfPlants(
                name=family,
                num_members=len(ground.members),
                truths={name: ground.members.describe(index) for name, index in truths[family].items()},
                is_limited=ground.limits is not None,
            )
            for family, ground in classes.items()
        ],
        horizons=spans,
        seeds=list(numbers),
        cells=[cells[key] for key in order if key in cells],
        left_out=left_out,
    )


def work(task: Task) -> dict[int, tuple[dict[str, Any], float]]:
    """The cells of a task in plain values, by horizon, with the seconds that each took."""
    import lqgap  # noqa: PLC0415

    lqgap.enable_x64()  # a process of its own has settings of its own
    members = _with_arrays(task.ground, jnp.asarray).members

    @functools.cache
    def make(horizon: int) -> Made:
        return task.method.make(
            Setting(
                family=members,
                members=members,
                horizon=horizon,
                ends=False,
                key=key_for(0, f"train {task.name}"),
                checkpoints=task.checkpoints(horizon),
                limits=task.ground.limits,
            )
        )

    def compute(horizon: int) -> tuple[dict[str, Any], float]:
        start = time.perf_counter()
        made = make(min(horizon, TRAINED_STEPS) if task.method.kind == "trained" else horizon)
        if isinstance(made.policy, Knowing):
            raise InvalidArgumentError(f"{task.name} knows the plant: there is nothing to compare")
        found = measure(
            made.policy,
            members,
            horizon=horizon,
            seeds=task.seeds,
            truths=task.truths,
            limits=task.ground.limits,
        )
        return _cell(task, horizon, found).model_dump(mode="json"), time.perf_counter() - start

    return {horizon: _keep(task, horizon, compute) for horizon in task.horizons}


def _told(outcomes: Iterable[Outcome], *, total: int) -> Iterator[Outcome]:
    """The same, while it is told how many there are so far."""
    with track("compare", total=total) as advance:
        for outcome in outcomes:
            advance(1)
            yield outcome


def _keep(
    task: Task, horizon: int, compute: Callable[[int], tuple[dict[str, Any], float]]
) -> tuple[dict[str, Any], float]:
    """What is computed goes to the store at once; what another process computes meanwhile is waited for."""
    store, unit = task.store, task.unit(horizon)
    if store is None:
        return compute(horizon)
    with store.claim(unit):
        known = store.get(unit)
        if known is not None and known.error is None:
            return _named(task, known), known.seconds
        cell, seconds = compute(horizon)
        store.put(unit, Finished(cell, None, seconds))
    return cell, seconds


def _cell(task: Task, horizon: int, found: Measured) -> Cell:
    rows = zip(found.truths.items(), found.traces, strict=True)
    runs = [
        OnlineRun(
            truth=truth,
            member=member,
            seed=seed,
            excess=float(trace.excess[-1]),
            switches=trace.num_switches,
            stopped=trace.num_stopped,
            faults=trace.num_faults,
            is_warming=trace.is_warming,
            diverged_at=trace.diverged_at,
        )
        for (truth, member), traces in rows
        for seed, trace in zip(found.seeds, traces, strict=True)
    ]
    return Cell(
        family=task.family,
        method=task.name,
        horizon=horizon,
        optimum=found.optimum,
        runs=runs,
        mean=float(found.mean[-1]),
        stderr=float(found.stderr[-1]),
        seconds_per_step=found.seconds_per_step,
        steps=found.steps.tolist(),
        growth=found.mean.tolist(),
        growth_stderr=found.stderr.tolist(),
    )


def _with_arrays(ground: Ground, read_fn: Callable[[Any], Any]) -> Ground:
    """With arrays of NumPy to send to a process, or of JAX: without double precision it would round them."""
    is_array = lambda leaf: isinstance(leaf, np.ndarray | jax.Array)  # noqa: E731
    members = jax.tree.map(lambda leaf: read_fn(leaf) if is_array(leaf) else leaf, ground.members)
    return replace(ground, members=members)


def _reason(error: str) -> str:
    """Without the kind of error, if it is one that users know."""
    kind, _, text = error.partition(": ")
    return text if kind in vars(errors) else error


def _known(tasks: Sequence[Task]) -> dict[tuple[str, str, int], Cell]:
    cells = {}
    for task in tasks:
        for horizon in task.horizons:
            known = None if task.store is None else task.store.get(task.unit(horizon))
            if known is not None and known.error is None:
                cells[task.family, task.name, horizon] = Cell.model_validate(_named(task, known))
    return cells


def _named(task: Task, known: Finished) -> dict[str, Any]:
    """A result that is kept does not depend on the names it was asked for by."""
    return known.result | {"family": task.family, "method": task.name}


def _missing(task: Task, cells: Mapping[tuple[str, str, int], Cell]) -> Task:
    left = tuple(span for span in task.horizons if (task.family, task.name, span) not in cells)
    return replace(task, horizons=left)


def _outcomes(tasks: Sequence[Task], processes: int) -> Any:
    if processes > 1 and len(tasks) > 1:
        return run_all(work, tasks, processes=processes)
    return (Outcome(index, *attempt(work, task)) for index, task in enumerate(tasks))


def _label(method: AbstractMethod) -> str:
    """With the options that are not the usual ones: two variants of a method must not look the same."""
    options = ", ".join(
        f"{key} = {json.dumps(value)}" for key, value in method.model_dump(exclude_defaults=True).items()
    )
    return f"{method.label} ({options})" if options else method.label
