"""The units of work of a method that learns on the plant itself: gaps, runs, regret, and an account of them.

Its regret bounds its gap: with D = max |(h+1) J - V*| over the members, gap(h) <= regret(h) + D.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lqgap.adaptive import LQGVTR, Trace, VTROptions, run, run_many
from lqgap.evaluation import gap
from lqgap.evaluation.gap import yardsticks
from lqgap.experiments import stages
from lqgap.experiments.setting import key_for
from lqgap.experiments.stages import NOISE, Bench
from lqgap.experiments.study import Adaptive
from lqgap.simulators.finite import solve_members

NUM_POINTS = 200  # of a trace


def judge(bench: Bench, options: Adaptive) -> dict[str, Any]:
    """The gap on every plant that methods meet, on the noise of all others."""
    algorithm = _algorithm(bench, options.constants, bench.study.horizon)
    estimate = gap(
        algorithm.policy(),
        bench.judged,
        horizon=bench.study.horizon,
        key=key_for(bench.study.seed, NOISE),
        num_rollouts=max(2, options.runs),
    )
    return {"mean": bench.split(estimate.mean), "stderr": bench.split(estimate.stderr)}


def runs(bench: Bench, options: Adaptive) -> list[dict[str, Any]]:
    """One run on each of the first real plants."""
    return stages.runs(bench, _algorithm(bench, options.constants, bench.study.horizon).policy())


def by_horizon(bench: Bench, options: Adaptive) -> dict[str, Any]:
    """The largest regret over the members at every horizon, and D."""
    horizons, members = bench.study.evaluation.horizons, bench.members
    rows = np.repeat(np.arange(len(members)), options.runs)
    traces = run_many(
        _algorithm(bench, options.constants, max(horizons)),
        jax.tree.map(lambda leaf: leaf[rows], members.systems),
        keys=jax.random.split(key_for(bench.study.seed, "regret"), len(rows)),
        num_points=max(horizons) + 1,
    )
    regret = np.asarray([trace.regret[horizons] for trace in traces])
    regret = regret.reshape(len(members), options.runs, len(horizons))
    mean = regret.mean(axis=1)
    stderr = regret.std(axis=1, ddof=min(1, options.runs - 1)) / np.sqrt(options.runs)
    worst = np.argmax(mean, axis=0)
    J = np.asarray(solve_members(members.systems).J)
    found = []
    for column, horizon in enumerate(horizons):
        value = np.asarray(yardsticks(members.systems, horizon=horizon).value)
        D = float(np.max(np.abs((horizon + 1) * J - value)))
        row = worst[column]
        found.append({"mean": float(mean[row, column]) + D, "stderr": float(stderr[row, column])})
    return {"worst": found}


def traces(bench: Bench, options: Adaptive) -> list[dict[str, Any]]:
    """What it did on each of the first real plants."""
    found, real = [], bench.real
    algorithm = _algorithm(bench, options.constants, bench.study.horizon)
    for index in range(min(bench.study.evaluation.trajectories, len(real.names))):
        plant = jax.tree.map(lambda leaf, index=index: leaf[index], real.systems)
        key = jax.random.fold_in(key_for(bench.study.seed, "traces"), index)
        trace = run(algorithm, plant, key=key, num_points=NUM_POINTS)
        found.append({"plant": real.names[index], **_account(bench, trace)})
    return found


def _account(bench: Bench, trace: Trace) -> dict[str, Any]:
    """A trace in plain values; before the first switch the member with the smallest J is acted on."""
    members = bench.members
    first = members.describe(int(jnp.argmin(solve_members(members.systems).J)))
    rows = [tuple(map(float, row)) for row in np.asarray(members.parameters)]
    acted = [(0, first)] + [(s.step, members.describe(rows.index(s.theta))) for s in trace.switches]
    changes = np.asarray([step for step, _ in acted])
    at = np.searchsorted(changes, trace.steps, side="right") - 1
    return {
        "times": trace.steps.tolist(),
        "regret": trace.regret.tolist(),
        "set_size": trace.num_members.tolist(),
        "model": [acted[index][1] for index in at],
        "switches": [switch.step for switch in trace.switches],
        "events": [{"time": event.step, "text": f"{event.name}: {event.message}"} for event in trace.events],
    }


@functools.lru_cache(maxsize=2)
def _algorithm(bench: Bench, constants: str, horizon: int) -> LQGVTR:
    # Side by side, waiting for the score saves nothing.
    return LQGVTR(bench.members, horizon=horizon, constants=constants, options=VTROptions(num_waiting=0))
