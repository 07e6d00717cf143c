"""An account of a method that learns, at work on the real plants."""

import jax
import numpy as np

from lqgap.adaptive import Trace, run_many
from lqgap.batches import take
from lqgap.experiments.plants import key_for
from lqgap.experiments.record import Adaptation, Event
from lqgap.experiments.results import Adapted
from lqgap.experiments.units import Workspace
from lqgap.policies import AbstractPolicy
from lqgap.simulators import Finite

NUM_POINTS = 200  # of a trace


def adapt(workspace: Workspace, name: str, policy: AbstractPolicy) -> Adapted:
    """What it did on each of the first real plants."""
    study, real = workspace.study, workspace.plants.real
    names = real.names[: study.evaluation.trajectories]
    traces = run_many(
        policy,
        take(real.systems, np.arange(len(names))),
        keys=jax.random.split(key_for(study.seed, "adapt"), len(names)),
        horizon=study.horizon,
        num_points=NUM_POINTS,
    )
    told = zip(names, traces, strict=True)
    return Adapted(runs=[_account(workspace.members, name, plant, trace) for plant, trace in told])


def _account(members: Finite, name: str, plant: str, trace: Trace) -> Adaptation:
    return Adaptation(
        method=name,
        plant=plant,
        times=trace.steps.tolist(),
        regret=trace.regret.tolist(),
        set_size=None if trace.num_members is None else trace.num_members.tolist(),
        model=[members.describe_values(row) for row in trace.theta] if trace.theta.size else None,
        switches=[int(switch.step) for switch in trace.switches],
        events=[Event(time=int(event.step), text=f"{event.name}: {event.message}") for event in trace.events],
        figures={figure: values.tolist() for figure, values in trace.figures.items()},
    )
