"""A method that learns on the plant itself: the algorithm, its regret, and an account of its runs.

Its regret bounds its gap: with D = max |(h+1) J - V*| over the members, gap(h) <= regret(h) + D.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lqgap.adaptive import LQGVTR, Trace, VTROptions, run_many
from lqgap.batches import join, take
from lqgap.evaluation.estimate import QUANTILES
from lqgap.evaluation.gap import references_of
from lqgap.experiments.methods import ABOUT
from lqgap.experiments.plants import key_for, pad_to
from lqgap.experiments.record import Adaptation, Estimate, Event, Series
from lqgap.experiments.results import Growth
from lqgap.experiments.study import Adaptive
from lqgap.experiments.units import Workspace
from lqgap.policies import AbstractPolicy
from lqgap.simulators.finite import solve_members

NUM_POINTS = 200  # of a trace


def policy_of(workspace: Workspace, options: Adaptive) -> AbstractPolicy:
    """The algorithm as a policy, which can be judged like any other."""
    return _algorithm(workspace, options.constants).policy()


def adapt(workspace: Workspace, name: str, options: Adaptive) -> Growth:
    """The largest regret over the members at every horizon, with D; and what it did on the real plants."""
    members, real = workspace.members, workspace.plants.real
    rows = np.repeat(np.arange(len(members)), options.runs)
    num_real = min(workspace.study.evaluation.trajectories, len(real.names))
    most = max(members.systems.num_states, real.systems.num_states)
    ours, theirs = pad_to(members.systems, most), pad_to(real.systems, most)
    plants = join([take(ours, rows), take(theirs, np.arange(num_real))])
    keys = jax.random.split(key_for(workspace.study.seed, "adapt"), len(rows) + num_real)
    algorithm = _algorithm(workspace, options.constants)
    traces = run_many(algorithm, plants, keys=keys, num_points=algorithm.horizon + 1)
    regret = np.asarray([trace.regret for trace in traces[: len(rows)]])
    worst = _worst_regrets(workspace, regret.reshape(len(members), options.runs, -1))
    series = Series(
        method=name,
        label=ABOUT[name].label,
        kind="regret + D_h",
        horizons=list(workspace.study.evaluation.horizons),
        values=worst,
    )
    told = zip(real.names[:num_real], traces[len(rows) :], strict=True)
    return Growth(
        series=series if worst else None,
        adaptations=[_account(workspace, name, plant, trace) for plant, trace in told],
    )


def _worst_regrets(workspace: Workspace, regret: np.ndarray) -> list[Estimate]:
    """At every horizon the largest mean over the members, plus D."""
    systems, count = workspace.members.systems, regret.shape[1]
    mean = regret.mean(axis=1)
    stderr = regret.std(axis=1, ddof=min(1, count - 1)) / np.sqrt(count)
    J = np.asarray(solve_members(systems).J)
    found = []
    for horizon in workspace.study.evaluation.horizons:
        value = np.asarray(references_of(systems, horizon=horizon).value)
        D = float(np.max(np.abs((horizon + 1) * J - value)))
        row = int(np.argmax(mean[:, horizon]))
        quantiles = np.quantile(regret[:, :, horizon], QUANTILES, axis=1, method="inverted_cdf")
        median, most = (np.max(quantiles, axis=1) + D).tolist()
        at = float(mean[row, horizon]) + D
        found.append(Estimate(mean=at, stderr=float(stderr[row, horizon]), median=median, most=most))
    return found


def _account(workspace: Workspace, name: str, plant: str, trace: Trace) -> Adaptation:
    """What a run did; before the first switch the member with the smallest J is acted on."""
    members, last = workspace.members, workspace.study.horizon
    first = members.describe(int(jnp.argmin(solve_members(members.systems).J)))
    rows = [tuple(map(float, row)) for row in np.asarray(members.parameters)]
    acted = [(0, first)] + [(s.step, members.describe(rows.index(s.theta))) for s in trace.switches]
    kept = np.arange(0, last + 1, max(1, last // NUM_POINTS))
    at = np.searchsorted([step for step, _ in acted], kept, side="right") - 1
    return Adaptation(
        method=name,
        plant=plant,
        times=kept.tolist(),
        regret=trace.regret[kept].tolist(),
        set_size=trace.num_members[kept].tolist(),
        model=[acted[index][1] for index in at],
        switches=[int(switch.step) for switch in trace.switches if switch.step <= last],
        events=[
            Event(time=int(event.step), text=f"{event.name}: {event.message}")
            for event in trace.events
            if event.step <= last
        ],
    )


@functools.lru_cache(maxsize=1)
def _algorithm(workspace: Workspace, constants: str) -> LQGVTR:
    """One horizon serves all units, which leaves less to compile."""
    horizon = max([workspace.study.horizon, *workspace.study.evaluation.horizons])
    # Side by side, waiting for the score saves nothing.
    return LQGVTR(workspace.members, horizon=horizon, constants=constants, options=VTROptions(buffer_size=0))
