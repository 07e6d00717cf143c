"""The units of work of a study: each a function from the study to a part of the record.

A `Workspace` holds what several units need and makes it when it is first asked for, so that a run that was
stopped does not make again what its store has. All chance follows from the seed: a unit gives the same
result whenever it is computed.
"""

import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lqgap.batches import join, take
from lqgap.errors import LqgapError, LqgapWarning, warn
from lqgap.evaluation import gap_by_horizon
from lqgap.evaluation.gap import Block, have_optimum, references_of, sample_runs
from lqgap.evaluation.horizons import shorten
from lqgap.evaluation.reference import Reference
from lqgap.evaluation.worst import BATCH
from lqgap.experiments import estimates
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod, Knowing, Made, Setting
from lqgap.experiments.plants import Plants, RealPlants, key_for, pad_to
from lqgap.experiments.provenance import checksum
from lqgap.experiments.record import (
    BoundRow,
    BoundsSheet,
    Look,
    Series,
    Trajectory,
)
from lqgap.experiments.results import (
    Growth,
    LowerBound,
    Runs,
    Theory,
    TrainedPolicy,
)
from lqgap.experiments.study import Study
from lqgap.policies import AbstractPolicy, save_policy
from lqgap.policies.serialization import can_save
from lqgap.simulators import Finite
from lqgap.systems import LQG
from lqgap.theory import bounds, minimax_lower_bound
from lqgap.theory.lower_bounds.belief import belief_bound, is_small

NOISE = "evaluation noise"  # the same for all methods
BOUND_TOLERANCE = 1e-4  # relative, of the search over priors, each of which gives a bound
MAX_CORNERS = 4  # members that the lower bound is computed for
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
        """The policy of a method; what is said meanwhile names the method."""
        study = self.study
        setting = Setting(
            family=self.plants.family,
            members=self.members,
            horizon=study.horizon,
            ends=study.ends,
            key=key_for(study.seed, f"train {name}"),
            checkpoints=checkpoints,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LqgapWarning)
            made = method.make(setting)
        for warning in caught:
            warn(f"{method.label}: {warning.message}")
        return made


def fill_batches(rows: np.ndarray) -> np.ndarray:
    """Rows in batches of the size of the search's, so that programs are shared; the last row fills up."""
    count = -(-len(rows) // BATCH) * BATCH
    return rows[np.minimum(np.arange(count), len(rows) - 1)].reshape(-1, BATCH)


def are_solvable(study: Study, systems: LQG) -> np.ndarray:
    """Which plants have an optimum, by the program that methods are judged with."""
    batches = [
        have_optimum(take(systems, batch), horizon=study.horizon, ends=study.ends)
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


def by_horizon(workspace: Workspace, name: str, policy: AbstractPolicy, *, num_rollouts: int) -> Growth:
    """The largest gap over the class at every horizon."""
    study, horizons = workspace.study, workspace.study.evaluation.horizons
    members, longest = workspace.members, max(horizons)
    systems, rows = members.systems, np.arange(len(members))
    if not study.ends:  # all horizons are parts of one run, by the program of other gaps
        systems, longest = pad_to(systems, workspace.judged.num_states), max(longest, study.horizon)
    planned = policy.for_horizon(longest, systems=members.systems)
    parts = [
        gap_by_horizon(
            planned,
            take(systems, batch),
            horizons=[*horizons, longest],
            key=key_for(study.seed, NOISE),
            num_rollouts=num_rollouts,
            ends=study.ends,
        )
        for batch in fill_batches(rows)
    ]
    values = [estimates.of_worst(estimates.joined(each, len(members))) for each in zip(*parts, strict=True)]
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
    return Runs(runs=[_trajectory(name, real, *each) for each in zip(rows.tolist(), blocks, strict=True)])


def lower_bound(workspace: Workspace) -> LowerBound:
    """What no policy can beat on some corners of the class, and so on all of it; at other horizons, too."""
    study = workspace.study
    corners = workspace.members.subset(_corners(workspace.members))
    # The sharpest kind if its sums are small enough, or else the one that always is.
    pair = take(_references(workspace, corners.systems, study.horizon), [0, -1])
    kinds = ("bayes",) if is_small(pair, num_steps=2) else ("two-point",)
    bound = minimax_lower_bound(corners, horizon=study.horizon, kinds=kinds, ends=study.ends)
    set_by = list(bound.pair)
    horizons, values = [study.horizon], [float(bound.value)]
    if study.evaluation.horizons and bound.kind == "bayes" and bound.num_steps == 2:  # cheap at any horizon
        horizons = list(study.evaluation.horizons)
        values = [float(bound.value)] * len(horizons)  # of the same two steps, if the task goes on
        if study.ends:
            references = _references(workspace, corners.subset(set_by).systems, max(horizons))
            shorter = [shorten(references, sooner=max(horizons) - horizon) for horizon in horizons]
            found = [belief_bound(each, num_steps=2, tolerance=BOUND_TOLERANCE) for each in shorter]
            values = [float(each.value) for each in found]
    return LowerBound(
        value=float(bound.value),
        kind=bound.kind,
        set_by=[corners.describe(index) for index in dict.fromkeys(set_by)],
        series=Series(
            method=None,
            label="No policy is better",
            kind="lower bound",
            horizons=horizons,
            values=[estimates.exact(value) for value in values],
        ),
    )


def theory_bounds(workspace: Workspace) -> Theory:
    """The sheet of bounds; where theory does not apply, why."""
    horizon = workspace.study.horizon
    try:
        sheet = bounds(workspace.members, horizon=horizon)
    except LqgapError as error:
        return Theory(missing=str(error))
    columns = dict(zip(("printed", "corrected", "actual"), sheet.bounds, strict=True))
    names = list(dict.fromkeys(itertools.chain.from_iterable(bound.terms for bound in sheet.bounds)))
    readers: dict[str, Callable[[Any], float | None]] = {
        name: lambda bound, name=name: bound.terms.get(name) for name in names
    }
    for name in ("regret", "gap", "nothing", "useful_from"):
        readers[name] = lambda bound, name=name: getattr(bound, name)
    rows = [
        BoundRow(name=name, **{column: read(bound) for column, bound in columns.items()})
        for name, read in readers.items()
    ]
    vacuous = {name: bool(bound.vacuous) for name, bound in columns.items()}
    return Theory(sheet=BoundsSheet(title=sheet.title, horizon=horizon, rows=rows, vacuous=vacuous))


def _references(workspace: Workspace, systems: LQG, horizon: int) -> Reference:
    return references_of(systems, horizon=horizon, ends=workspace.study.ends)


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


def _trajectory(name: str, real: RealPlants, row: int, block: Block) -> Trajectory:
    """The rollout of this number on the real plant of this number."""
    y, u = (np.asarray(signal)[row % BATCH, row % signal.shape[1]] for signal in (block.y, block.u))
    Q, R = (np.asarray(weight)[row] for weight in (real.systems.Q, real.systems.R))
    cost = np.sum(y @ Q * y, axis=1) + np.sum(u @ R * u, axis=1)
    return Trajectory(method=name, plant=real.names[row], cost=cost.tolist(), u=u.tolist(), y=y.tolist())


def _corners(members: Finite) -> list[int]:
    """Members whose parameters are all extreme, a few of them; members evenly spaced if there are none."""
    parameters = np.asarray(members.parameters)
    extreme = np.all((parameters == parameters.min(axis=0)) | (parameters == parameters.max(axis=0)), axis=1)
    rows = np.flatnonzero(extreme)
    rows = rows if len(rows) > 1 else np.arange(len(members))
    return np.unique(
        rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_CORNERS)).round().astype(int)]
    ).tolist()
