"""The units of work of a study: each a function from the study to a part of the record.

A `Workspace` holds what several units need and makes it when it is first asked for, so that a run that was
stopped does not make again what its store has. All chance follows from the seed: a unit gives the same
result whenever it is computed.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lqgap.batches import join, take
from lqgap.errors import LqgapWarning, warn
from lqgap.evaluation import GapEstimate, gap_by_horizon
from lqgap.evaluation.gap import Block, have_optimum, sample_runs
from lqgap.evaluation.worst import BATCH
from lqgap.experiments import estimates
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod, Knowing, Made, Setting
from lqgap.experiments.plants import Plants, key_for, pad_to
from lqgap.experiments.provenance import checksum
from lqgap.experiments.record import (
    Look,
    Series,
    Trajectory,
)
from lqgap.experiments.results import (
    Growth,
    Runs,
    TrainedPolicy,
)
from lqgap.experiments.study import Study
from lqgap.policies import AbstractPolicy
from lqgap.policy_files import can_save, save_policy
from lqgap.simulators import AbstractFamily, Finite
from lqgap.systems import LQG
from lqgap.systems.kalman import expected_costs

NOISE = "evaluation noise"  # the same for all methods
FRESH = "fresh noise"  # of what a search finds; the same for all methods
UNLIMITED = "with loads, training knows no limits of inputs; it is judged within them"
DELTA = 0.05  # with which the upper end of the bracket may fail


class Workspace:
    """An audited study at work.

    Args:
        kept: the members that the audit left.
        folder: of the run.
    """

    def __init__(self, plants: Plants, kept: Sequence[int], folder: Path):
        self.plants, self.kept, self.folder = plants, kept, folder
        self.study = plants.study

    @functools.cached_property
    def members(self) -> Finite:
        """The class without the members that the audit removed."""
        return self.plants.members.subset(self.kept)

    @functools.cached_property
    def is_solvable(self) -> np.ndarray:
        """Which plants of the class, of those that are tried, and of the real ones have an optimum."""
        return are_solvable(self.study, self._all_plants)

    @functools.cached_property
    def judged(self) -> LQG:
        """All plants that methods are evaluated on; the first stands in for those without an optimum."""
        return take(self._all_plants, np.where(self.is_solvable, np.arange(len(self.is_solvable)), 0))

    @functools.cached_property
    def _all_plants(self) -> LQG:
        tried, real = self.plants.tried, self.plants.real
        groups = [self.members.systems, *([tried.systems] if tried else []), real.systems]
        most = max(group.num_states for group in groups)
        return join([pad_to(group, most) for group in groups])

    def split(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of all judged plants: those of the class, of those that are tried, and of the real ones."""
        first, last = len(self.members), len(values) - len(self.plants.real.names)
        return values[:first], values[first:last], values[last:]

    def describe(self, index: int) -> str:
        """The judged plant of this number, for people."""
        for group in (self.members, self.plants.tried):
            if group is not None and index < len(group):
                return group.describe(index)
            index -= 0 if group is None else len(group)
        real = self.plants.real
        values = ", ".join(f"{name} = {value:.6g}" for name, value in real.parameters[index].items())
        return f"{real.names[index]} ({values})" if values else real.names[index]

    def make(self, name: str, method: AbstractMethod, checkpoints: Path | None) -> Made:
        """The policy of a method, within the limits of inputs; what is said meanwhile names the method."""
        study = self.study
        setting = Setting(
            family=self.plants.family,
            members=self.members,
            horizon=study.horizon,
            ends=study.ends,
            key=key_for(study.seed, f"train {name}"),
            checkpoints=checkpoints,
            limits=self.plants.limits,
            probe=study.probe if isinstance(study.probe, str) else study.probe.max,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LqgapWarning)
            made = method.make(setting)
            if method.kind == "trained" and study.plant.loads and self.plants.has_limits:
                warn(UNLIMITED)
        for warning in caught:
            warn(f"{method.label}: {warning.message}")
        if isinstance(made.policy, Knowing):
            return made
        return replace(made, policy=self.plants.limited(made.policy))

    def informed(self, plant: LQG) -> AbstractPolicy:
        """The controller that knows the plant, within limits of which its plan does not know."""
        return self.plants.limited(Knowing(self.study.horizon if self.study.ends else None).on(plant))


def fill_batches(rows: np.ndarray) -> np.ndarray:
    """Rows in batches of the size of the search's, so that programs are shared; the last row fills up."""
    count = -(-len(rows) // BATCH) * BATCH
    return rows[np.minimum(np.arange(count), len(rows) - 1)].reshape(-1, BATCH)


def are_solvable(study: Study, systems: LQG, *, horizon: int | None = None) -> np.ndarray:
    """Which plants have an optimum, over the study's horizon or another, by the program of gaps."""
    horizon = horizon or study.horizon
    batches = [
        have_optimum(take(systems, batch), horizon=horizon, ends=study.ends)
        for batch in fill_batches(np.arange(len(systems.A)))
    ]
    return np.concatenate(batches)[: len(systems.A)]


def keep(workspace: Workspace, make_fn: Callable[[], Made], name: str) -> TrainedPolicy:
    """Make the policy of a method and save it under a name, if a file can hold it."""
    path, made = Path("policies") / f"{name}.safetensors", make_fn()
    history = [
        Look(
            stage=int(look["stage"]),
            step=int(look["step"]),
            worst=float(look["worst"]),
            mean=float(look["mean"]),
            best=float(look["best"]),
        )
        for look in made.history
    ]
    trained = TrainedPolicy(history=history, has_improved=made.has_improved)
    if not can_save(made.policy):
        return trained
    save_policy(workspace.folder / path, made.policy)
    return trained.model_copy(update={"file": path.as_posix(), "checksum": checksum(workspace.folder / path)})


def by_horizon(
    workspace: Workspace,
    name: str,
    policy: AbstractPolicy,
    found: Sequence[Sequence[float]],
    *,
    num_rollouts: int,
) -> Growth:
    """The largest gap at every horizon over the class, and over what a search found in the ranges.

    Args:
        found: parameters of plants, which meet noise that they were not chosen by; none without ranges.
    """
    study, horizons = workspace.study, workspace.study.evaluation.horizons
    family, longest = workspace.plants.family, max(horizons)
    groups = [(NOISE, workspace.members.systems)]
    if isinstance(family, AbstractFamily) and found:
        groups.append((FRESH, family.members(found).systems))
    if not study.ends:  # all horizons are parts of one run, by the program of other gaps
        most, longest = workspace.judged.num_states, max(longest, study.horizon)
        groups = [(noise, pad_to(systems, most)) for noise, systems in groups]
    planned = policy.for_horizon(longest, systems=workspace.members.systems)

    def measure(noise: str, systems: LQG) -> list[GapEstimate]:
        rows = np.flatnonzero(are_solvable(study, systems, horizon=longest))
        parts = [
            gap_by_horizon(
                planned,
                take(systems, batch),
                horizons=[*horizons, longest],
                key=key_for(study.seed, noise),
                num_rollouts=num_rollouts,
                ends=study.ends,
            )
            for batch in (fill_batches(rows) if len(rows) else ())
        ]
        return [estimates.joined(each, len(rows)) for each in zip(*parts, strict=True)]

    measured = [found for found in (measure(*group) for group in groups) if found]
    values = [estimates.of_worst(estimates.joined(each)) for each in zip(*measured, strict=True)]
    values.pop()  # the longest
    label = METHODS[name].label
    return Growth(
        series=Series(method=name, label=label, kind="worst gap", horizons=list(horizons), values=values)
    )


def runs(workspace: Workspace, name: str, policy: AbstractPolicy | Knowing, *, num_rollouts: int) -> Runs:
    """One run on each of the first real plants; the noise of a plant is the same for all methods.

    Args:
        num_rollouts: of the gaps, whose program runs them.
    """
    real, study = workspace.plants.real, workspace.study
    rows = np.arange(min(study.evaluation.trajectories, len(real.names)))
    block_fn = functools.partial(_block, workspace, num_rollouts=num_rollouts)
    if isinstance(policy, Knowing):
        blocks = [block_fn(policy.on(take(real.systems, row)), np.full(BATCH, row)) for row in rows]
    else:
        batches = [block_fn(policy, batch) for batch in fill_batches(rows)] if len(rows) else []
        blocks = [batches[row // BATCH] for row in rows]
    told = zip(rows.tolist(), blocks, strict=True)
    return Runs(runs=[_trajectory(name, workspace.plants, *each) for each in told])


def _block(workspace: Workspace, policy: AbstractPolicy, rows: np.ndarray, *, num_rollouts: int) -> Block:
    """Rollouts on some real plants."""
    study = workspace.study
    return sample_runs(
        policy,
        take(pad_to(workspace.plants.real.systems, workspace.judged.num_states), rows),
        horizon=study.horizon,
        key=key_for(study.seed, "runs"),
        num_rollouts=num_rollouts,
        ends=study.ends,
    )


def _trajectory(name: str, plants: Plants, row: int, block: Block) -> Trajectory:
    """The rollout of this number on the real plant of this number, in real signals."""
    real, signals = plants.real, plants.signals
    y, u = (np.asarray(signal)[row % BATCH, row % signal.shape[1]] for signal in (block.y, block.u))
    cost = np.asarray(expected_costs(take(real.systems, row), y, u))
    u = np.cumsum(u, axis=0) if plants.study.plant.loads else u  # which are changes
    u, y = u + np.asarray(signals.u0 or 0.0), y + np.asarray(signals.y0 or 0.0)
    return Trajectory(method=name, plant=real.names[row], cost=cost.tolist(), u=u.tolist(), y=y.tolist())
