"""What a sweep costs beside its studies, and from that a calculation for ten thousand machines.

Nothing here was run on more than one machine: the constants are measured, the rest is computed from them.
"""

import json
import pickle
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.timing import table
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.sweep import Task, _on_dask, combine, measure

STUDY = """
horizon = 40
[plant]
family = "dc_motor"
[grid]
points = 2
[methods]
nominal = {}
bank = {}
[real]
count = 4
[evaluation]
rollouts = 256
horizons = []
map_points = 2
trajectories = 0
bounds = false
"""
NUM_STUDIES, PROCESSES = 1_000_000, 2
CASES = ((1, 10), (100, 10), (10_000, 10), (10_000, 100), (10_000, 1_000))  # machines, sweeps
NUM_COMBINED, NUM_KEPT, NUM_TASKS, NUM_MEASURED = 300, 300, 500, 4


def run() -> str:
    """Two sections: constants, and what follows."""
    found = constants()
    return "\n".join([_constants_table(found), _calculation(found)])


def constants() -> dict[str, float]:
    """Seconds of processors for each study; of the store those on the clock, as it waits for disks."""
    study, source = parse_study(STUDY, name="study.toml", folder=Path.cwd())
    start = time.process_time()
    studies = combine(study, source, {"seed": list(range(NUM_COMBINED))})
    combining = (time.process_time() - start) / NUM_COMBINED
    with tempfile.TemporaryDirectory() as folder:
        plain = [each.model_dump(exclude_none=True) for _, each in studies]
        tasks = [Task(each, folder, source.name, False, folder) for each in plain]
        times, result = [], {}
        for task in tasks[: NUM_MEASURED + 1]:
            start = time.process_time()
            result, _ = measure(task)
            times.append(time.process_time() - start)
        units = [Unit("sweep", each.model_dump(exclude={"title"}), seed=each.seed) for _, each in studies]
        store = Store(Path(folder) / "store.sqlite")
        with store.kept_open():
            written = _each(lambda unit: store.put(unit, Finished(result, None, 0.0)), units[:NUM_KEPT])
        read = _each(lambda unit: (store.find(unit, source.folder), store.get(unit)), units[:NUM_KEPT])
        dispatched = _dispatch(tasks[0])
    return {
        "combined": combining,
        "first": times[0],
        "study": float(np.median(times[1:])),
        "read": read,
        "written": written,
        "dispatched": dispatched,
        "sent": len(pickle.dumps(tasks[0])) / 1e3,
        "kept": len(json.dumps(result)) / 1e3,
    }


def _each(call, units: list[Unit]) -> float:
    times = []
    for unit in units:
        start = time.perf_counter()
        call(unit)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _dispatch(task: Task) -> float:
    """Of client and scheduler, which are this process, for a study that workers refuse at once."""
    refused = Task({"horizon": 0}, task.folder, task.name, False, task.scratch)
    where = dict(n_workers=PROCESSES, threads_per_worker=1, dashboard_address=None)
    with LocalCluster(**where) as cluster, Client(cluster) as client:
        assert all(each.error for each in _on_dask(client, [refused] * 10))  # workers import all they need
        start = time.process_time()
        count = sum(1 for _ in _on_dask(client, [refused] * NUM_TASKS))
        return (time.process_time() - start) / count


def _constants_table(found: dict[str, float]) -> str:
    def show(value: float) -> str:
        return f"{value:.2f} s" if value > 1 else f"{1e3 * value:.2f} ms"

    rows = [
        ["a study, the first of a process (compilation)", show(found["first"]), "every process, once"],
        ["a study after it", show(found["study"]), "processes, side by side"],
        ["making and checking a study", show(found["combined"]), "the one that sweeps, before"],
        ["looking for its result", show(found["read"]), "the one that sweeps, before"],
        ["sending it and having it back", show(found["dispatched"]), "the one that sweeps, meanwhile"],
        ["keeping its result", show(found["written"]), "the one that sweeps, meanwhile"],
        ["its size, sent and as result", f"{found['sent']:.1f} and {found['kept']:.1f} kB", ""],
    ]
    note = (
        "Of a sweep of small studies (docs/tutorials/cluster.md). Time of processors; of the store, median "
        f"time on the clock. Sending is measured with `distributed`, a scheduler and {PROCESSES} processes "
        f"on this machine, by {NUM_TASKS} tasks that are refused at once."
    )
    return table("Growth of a sweep: constants", note, ["", "for each study", "who pays"], rows)


def _calculation(found: dict[str, float]) -> str:
    before = found["combined"] + found["read"]
    meanwhile = found["dispatched"] + found["written"]
    busy = found["study"] / meanwhile

    def whole(machines: int, sweeps: int) -> tuple[float, float]:
        alone = found["first"] + NUM_STUDIES * found["study"] / (machines * PROCESSES)
        return NUM_STUDIES / sweeps * before + max(alone, NUM_STUDIES / sweeps * meanwhile), alone

    rows = []
    for machines, sweeps in CASES:
        total, alone = whole(machines, sweeps)
        row = [f"{machines:,}", f"{sweeps:,}", _hours(alone), _hours(total), f"{alone / total:.0%}"]
        rows.append(row)
    note = (
        f"**Computed from measured constants** (the section before), not run: {NUM_STUDIES:,} studies "
        f"on machines with {PROCESSES} processes each, shared among sweeps with a store and a scheduler of "
        "their own. T = n (making + looking) + max(first + N study / processes, n (sending + keeping)) for N "
        f"studies in all and n in each sweep. One sweep keeps {busy:.0f} processes busy: study / (sending + "
        "keeping). It takes at most 100,000 studies, so that a million is ten sweeps at least."
    )
    header = ["machines", "sweeps side by side", "studies alone", "all of it", "of which studies"]
    return table("Growth of a sweep: ten thousand machines", note, header, rows)


def _hours(seconds: float) -> str:
    for unit, scale in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"
