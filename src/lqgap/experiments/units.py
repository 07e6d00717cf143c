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

import jax
import numpy as np

from lqgap.batches import join, take
from lqgap.errors import LqgapError, LqgapWarning, warn
from lqgap.evaluation import gap_by_horizon, rollout
from lqgap.evaluation.gap import have_optimum, references_of
from lqgap.evaluation.horizons import shorten
from lqgap.evaluation.reference import Reference
from lqgap.evaluation.worst import BATCH
from lqgap.experiments import estimates
from lqgap.experiments.family import Family
from lqgap.experiments.methods import ABOUT, Made, make_policy, plan_for
from lqgap.experiments.plants import Plants, key_for, pad_to
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
from lqgap.policies import AbstractPolicy, FiniteHorizonLQG, StationaryLQG, save_policy
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
        plants, study = self._all_plants, self.study
        rows = np.arange(len(plants.A))
        batches = [
            have_optimum(take(plants, batch), horizon=study.horizon, ends=study.ends)
            for batch in fill_batches(rows)
        ]
        return np.concatenate(batches)[: len(rows)]

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

    def policy_path(self, name: str, key: str) -> Path:
        """Where the policy of a method lies; another study has another key."""
        return Path("policies") / f"{name}-{key[:8]}.safetensors"


def fill_batches(rows: np.ndarray) -> np.ndarray:
    """Rows in batches of the size of the search's, so that programs are shared; the last row fills up."""
    count = -(-len(rows) // BATCH) * BATCH
    return rows[np.minimum(np.arange(count), len(rows) - 1)].reshape(-1, BATCH)


def train(workspace: Workspace, name: str, *, key: str) -> TrainedPolicy:
    """Make the policy of a method, and save it."""
    path = workspace.policy_path(name, key)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LqgapWarning)
        made = _make(workspace, name, workspace.folder / "checkpoints" / f"{name}-{key[:8]}")
    for warning in caught:
        warn(f"{ABOUT[name].label}: {warning.message}")
    save_policy(workspace.folder / path, made.policy)
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
    return TrainedPolicy(
        file=path.as_posix(),
        checksum=checksum(workspace.folder / path),
        history=history,
        has_improved=made.has_improved,
    )


def by_horizon(workspace: Workspace, name: str, policy: AbstractPolicy, *, num_rollouts: int) -> Growth:
    """The largest gap over the class at every horizon."""
    study, horizons = workspace.study, workspace.study.evaluation.horizons
    members, longest = workspace.members, max(horizons)
    systems, rows = members.systems, np.arange(len(members))
    if not study.ends:  # all horizons are parts of one run, by the program of other gaps
        systems, longest = pad_to(systems, workspace.judged.num_states), max(longest, study.horizon)
    planned = plan_for(policy, members, horizon=longest)
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
    label = ABOUT[name].label
    return Growth(
        series=Series(method=name, label=label, kind="worst gap", horizons=list(horizons), values=values)
    )


def runs(workspace: Workspace, name: str, policy: AbstractPolicy | None) -> Runs:
    """One run on each of the first real plants; the noise of a plant is the same for all methods."""
    real, horizon, found = workspace.plants.real, workspace.study.horizon, []
    for index in range(min(workspace.study.evaluation.trajectories, len(real.names))):
        plant = take(real.systems, index)
        acting = policy or (
            FiniteHorizonLQG(plant, horizon) if workspace.study.ends else StationaryLQG(plant)
        )
        key = jax.random.fold_in(key_for(workspace.study.seed, "runs"), index)
        run = rollout(acting, plant, horizon=horizon, key=key)
        parts = {part: np.asarray(getattr(run, part)).tolist() for part in ("cost", "u", "y")}
        found.append(Trajectory(method=name, plant=real.names[index], **parts))
    return Runs(runs=found)


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


def _make(workspace: Workspace, name: str, checkpoints: Path) -> Made:
    """The policy of a method of the study."""
    study, family = workspace.study, workspace.plants.family
    try:
        return make_policy(
            name,
            study.methods.chosen[name],
            family=family,
            members=workspace.members,
            horizon=study.horizon,
            ends=study.ends,
            seed=study.seed,
            checkpoints=checkpoints,
        )
    except LqgapError as error:
        if name != "nominal":
            raise
        raise type(error)(f"the plant in the middle, {_middle(family)}: {error}") from None


def _middle(family: Family) -> str:
    """The parameters of the plant that the nominal controller is made for."""
    if isinstance(family, Finite):
        return family.describe(len(family) // 2)
    middle = {p.name: p.middle for p in family.parameters}
    return ", ".join(f"{name} = {value:.6g}" for name, value in middle.items())


def _corners(members: Finite) -> list[int]:
    """Members whose parameters are all extreme, a few of them; members evenly spaced if there are none."""
    parameters = np.asarray(members.parameters)
    extreme = np.all((parameters == parameters.min(axis=0)) | (parameters == parameters.max(axis=0)), axis=1)
    rows = np.flatnonzero(extreme)
    rows = rows if len(rows) > 1 else np.arange(len(members))
    return np.unique(
        rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_CORNERS)).round().astype(int)]
    ).tolist()
