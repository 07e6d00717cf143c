"""Online methods against each other: any of the registry, on classes, over horizons, on common noise.

A method is told the class and the horizon and is made as in a study; a trained one is trained over its first
steps, and run as it is. What is computed is kept in a store, by method, class and horizon: a comparison that
was stopped goes on, and one with more methods or horizons computes only these. A method that fails on a class
is left out there, with the reason.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lqgap import errors
from lqgap.adaptive.compare import Measured, measure, pick_truths, read_seeds
from lqgap.arguments import read_count
from lqgap.errors import InvalidArgumentError, warn
from lqgap.experiments.comparison import Cell, ClassOfPlants, Comparison, Contender, LeftOut, OnlineRun
from lqgap.experiments.contenders import read_classes, read_methods
from lqgap.experiments.methods.base import AbstractMethod, Knowing, Made, Setting
from lqgap.experiments.plants import key_for
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.transfer import STORE
from lqgap.experiments.workers import Outcome, attempt, run_all
from lqgap.files import require_folder
from lqgap.simulators import AbstractFamily, Finite
from lqgap.states import fingerprint

TRAINED_STEPS = 200  # that a trained policy is trained over
Progress = Callable[[str, float | None], None]  # what was computed, and in how many seconds


@dataclass(frozen=True)
class Task:
    """All that another process needs to know: a method on a class, over the horizons that are missing."""

    family: str
    members: Finite
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
        configuration = {key: self._configuration[key] for key in ("members", "method", "options")}
        return self.folder / "checkpoints" / Unit("train", configuration | {"horizon": horizon}, seed=0).key

    def unit(self, horizon: int) -> Unit:
        """What determines the result over a horizon."""
        return Unit("compare", self._configuration | {"horizon": horizon}, seed=self.seeds[0])

    @property
    def _configuration(self) -> dict[str, Any]:
        return {
            "members": fingerprint(self.members),
            "method": type(self.method).__name__,
            "options": self.method.model_dump(),
            "seeds": list(self.seeds),
            "truths": dict(self.truths),
        }


def compare(
    methods: Sequence[str] | Mapping[str, AbstractMethod] | None = None,
    families: Sequence[str] | Mapping[str, AbstractFamily | Finite] | None = None,
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
            and classes by name; by default eight built-in ones.
        seeds: of the noise, or how many.
        folder: where results are kept, if they are.
        processes: that compute.
    """
    chosen, classes = read_methods(methods), read_classes(families)
    spans = sorted({read_count("horizons", each, least=10, most=10_000_000) for each in horizons})
    numbers = read_seeds(range(seeds) if isinstance(seeds, int) else seeds)
    place = None if folder is None else Path(folder)
    store = None if place is None else Store(place / STORE)
    truths = {family: pick_truths(members) for family, members in classes.items()}
    tasks = [
        Task(
            family,
            _with_arrays(members, np.asarray),
            name,
            method,
            tuple(spans),
            numbers,
            truths[family],
            place,
        )
        for family, members in classes.items()
        for name, method in chosen.items()
    ]
    cells = _known(store, tasks)
    missing = [_missing(task, cells) for task in tasks]
    missing = [task for task in missing if task.horizons]
    if missing and place is not None and store is not None:
        require_folder(place)
        if store.has_other_code():
            notice(f"{store.path} has results of another version of lqgap, which are kept, not used")
    left_out = []
    for outcome in _outcomes(missing, processes):
        task = missing[outcome.index]
        if progress is not None:
            seconds = sum(each[1] for each in outcome.answer.values()) if outcome.answer else None
            progress(f"{task.name} on {task.family}", seconds)
        if outcome.error is not None:
            left_out.append(LeftOut(family=task.family, method=task.name, reason=_reason(outcome.error)))
            continue
        for horizon, (cell, seconds) in outcome.answer.items():
            cells[task.family, task.name, horizon] = Cell.model_validate(cell)
            if store is not None:
                store.put(task.unit(horizon), Finished(cell, None, seconds))
    order = [(task.family, task.name, span) for task in tasks for span in spans]
    return Comparison(
        methods=[
            Contender(name=name, label=_label(name, m), kind=m.kind, description=m.about)
            for name, m in chosen.items()
        ],
        families=[
            ClassOfPlants(
                name=family,
                num_members=len(members),
                truths={name: members.describe(index) for name, index in truths[family].items()},
            )
            for family, members in classes.items()
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
    members = _with_arrays(task.members, jnp.asarray)

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
            )
        )

    cells = {}
    for horizon in task.horizons:
        start = time.perf_counter()
        made = make(min(horizon, TRAINED_STEPS) if task.method.kind == "trained" else horizon)
        if isinstance(made.policy, Knowing):
            raise InvalidArgumentError(f"{task.name} knows the plant: there is nothing to compare")
        found = measure(made.policy, members, horizon=horizon, seeds=task.seeds, truths=task.truths)
        cell = _cell(task, horizon, found).model_dump(mode="json")
        cells[horizon] = (cell, time.perf_counter() - start)
    return cells


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


def _with_arrays(members: Finite, read_fn: Callable[[Any], Any]) -> Finite:
    """With arrays of NumPy to send to a process, or of JAX: without double precision it would round them."""
    is_array = lambda leaf: isinstance(leaf, np.ndarray | jax.Array)  # noqa: E731
    return jax.tree.map(lambda leaf: read_fn(leaf) if is_array(leaf) else leaf, members)


def _reason(error: str) -> str:
    """Without the kind of error, if it is one that users know."""
    kind, _, text = error.partition(": ")
    return text if kind in vars(errors) else error


def _known(store: Store | None, tasks: Sequence[Task]) -> dict[tuple[str, str, int], Cell]:
    cells = {}
    for task in tasks if store is not None else ():
        for horizon in task.horizons:
            known = store.get(task.unit(horizon)) if store is not None else None
            if known is not None and known.error is None:
                named = known.result | {"family": task.family, "method": task.name}
                cells[task.family, task.name, horizon] = Cell.model_validate(named)
    return cells


def _missing(task: Task, cells: Mapping[tuple[str, str, int], Cell]) -> Task:
    left = tuple(span for span in task.horizons if (task.family, task.name, span) not in cells)
    return replace(task, horizons=left)


def _outcomes(tasks: Sequence[Task], processes: int) -> Any:
    if processes > 1 and len(tasks) > 1:
        return run_all(work, tasks, processes=processes)
    return (Outcome(index, *attempt(work, task)) for index, task in enumerate(tasks))


def _label(name: str, method: AbstractMethod) -> str:
    _, brace, options = name.partition("{")
    return f"{method.label} ({options.rstrip('} ')})" if brace else method.label
