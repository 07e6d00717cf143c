"""A method that learns on the plant itself: the algorithm, its gaps, and an account of its runs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lqgap.adaptive import LQGVTR, Trace, VTROptions, run_many
from lqgap.batches import take
from lqgap.experiments.plants import key_for
from lqgap.experiments.record import Adaptation, Event
from lqgap.experiments.results import Growth
from lqgap.experiments.study import Adaptive
from lqgap.experiments.units import Workspace, by_horizon
from lqgap.policies import AbstractPolicy
from lqgap.systems.optimum import solve_members

NUM_POINTS = 200  # of a trace


def policy_of(workspace: Workspace, options: Adaptive) -> AbstractPolicy:
    """The algorithm as a policy, which can be judged like any other."""
    return _algorithm(workspace, options.constants).policy()


def adapt(workspace: Workspace, name: str, options: Adaptive) -> Growth:
    """Its largest gap over the members at every horizon, and what it did on the real plants."""
    study, real = workspace.study, workspace.plants.real
    grown = Growth(series=None)
    if study.evaluation.horizons:
        policy = policy_of(workspace, options)
        grown = by_horizon(workspace, name, policy, num_rollouts=max(2, options.runs))
    names = real.names[: study.evaluation.trajectories]
    if not names:
        return grown
    algorithm = _algorithm(workspace, options.constants)
    traces = run_many(
        algorithm,
        take(real.systems, np.arange(len(names))),
        keys=jax.random.split(key_for(study.seed, "adapt"), len(names)),
        num_points=algorithm.horizon + 1,
    )
    told = zip(names, traces, strict=True)
    accounts = [_account(workspace, name, plant, trace) for plant, trace in told]
    return grown.model_copy(update={"adaptations": accounts})


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
