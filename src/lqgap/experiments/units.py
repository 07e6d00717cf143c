"""The units of work of a study: each a function from the study to a part of the record.

A `Workspace` holds what several units need and makes it when it is first asked for, so that a run that was
stopped does not make again what its store has. All chance follows from the seed: a unit gives the same
result whenever it is computed.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lqgap.batches import join, take
from lqgap.errors import LqgapError, NotConvergedError
from lqgap.evaluation import gap, gap_by_horizon, rollout
from lqgap.evaluation.gap import references_of
from lqgap.evaluation.horizons import shorten
from lqgap.experiments.methods import ABOUT, make_policy, plan_for
from lqgap.experiments.plants import BoxMap, Plants, key_for, pad_to
from lqgap.experiments.provenance import checksum
from lqgap.experiments.record import (
    Audit,
    BoundRow,
    BoundsSheet,
    Condition,
    Estimate,
    GapMap,
    HeatMap,
    Look,
    MethodGaps,
    Parameter,
    Plant,
    Series,
    Trajectory,
)
from lqgap.experiments.results import (
    AuditedClass,
    Growth,
    Judged,
    JudgedPlants,
    LowerBound,
    Runs,
    Theory,
    TrainedPolicy,
)
from lqgap.policies import AbstractPolicy, FiniteHorizonLQG, save_policy
from lqgap.simulators import AbstractFamily, Finite, check_assumptions
from lqgap.systems import LQG
from lqgap.theory import bounds, minimax_lower_bound
from lqgap.theory.certificates.bracket import upper_limit
from lqgap.theory.lower_bounds.belief import belief_bound, is_small

NOISE = "evaluation noise"  # the same for all methods
BOUND_TOLERANCE = 1e-4  # relative, of the search over priors, each of which gives a bound
MAX_CORNERS = 4  # members that the lower bound is computed for
DELTA = 0.05  # with which the upper end of the bracket may fail
OUTSIDE = (
    "{name} is outside the family: no simulator matches it (realizability fails), and the worst gap over the "
    "ranges does not cover it"
)
FROM_CLASS = "the real plants are drawn from the class itself: every method has seen all of them"


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
    def judged(self) -> LQG:
        """All plants that methods are evaluated on: the class, the map and the real ones, in this order."""
        groups = [self.members.systems, self.plants.real.systems]
        if self.plants.box is not None:
            groups.insert(1, self.plants.box.members.systems)
        most = max(group.num_states for group in groups)
        return join([pad_to(group, most) for group in groups])

    def split(self, values: np.ndarray) -> tuple[list[float], list[float], list[float]]:
        """Values of all judged plants: those of the class, of the map, and of the real plants."""
        first, last = len(self.members), len(values) - len(self.plants.real.names)
        return values[:first].tolist(), values[first:last].tolist(), values[last:].tolist()

    def policy_path(self, name: str, key: str) -> Path:
        """Where the policy of a method lies; another study has another key."""
        return Path("policies") / f"{name}-{key[:8]}.safetensors"


def audit(plants: Plants) -> AuditedClass:
    """Which assumptions hold, and which members are left: those that have an optimum."""
    members = plants.members
    found = check_assumptions(members)
    has_optimum = np.asarray(found.measures.has_optimum)
    kept = np.flatnonzero(has_optimum).tolist()
    if not kept:
        raise NotConvergedError(f"no member of the class has an optimum: {found.checks[0].remedy}")
    actions = []
    if removed := len(members) - len(kept):
        first = members.describe(int(np.argmin(has_optimum)))
        actions.append(f"removed {removed} of {len(members)} members without an optimum, such as {first}")
    unstable = int(np.sum(np.asarray(found.measures.spectral_radius)[kept] >= 1))
    if unstable:
        actions.append(f"kept {unstable} members that are open-loop unstable: no bound of the theory holds")
    contraction = found.contraction
    if contraction is not None and contraction.holds and found.constants["gamma_1"] >= 1:
        actions.append(
            f"bounds use a common weighted norm of condition {contraction.condition:.3g}, in which all "
            f"closed loops contract by {contraction.gamma:.4g}"
        )
    conditions = [
        Condition(
            assumption=check.assumption,
            statement=check.statement,
            as_printed=bool(check.as_printed),
            repaired=bool(check.repaired),
            value=float(check.value),
            margin=float(check.margin),
            set_by=members.describe(check.member),
            remedy=check.remedy,
        )
        for check in found.checks
    ]
    constants = {name: float(value) for name, value in found.constants.items()}
    report = Audit(
        num_members=len(members),
        num_kept=len(kept),
        actions=actions,
        conditions=conditions,
        constants=constants,
    )
    return AuditedClass(kept=kept, audit=report)


def optimum(workspace: Workspace) -> JudgedPlants:
    """What a controller that knows its plant costs, for every plant that methods are evaluated on."""
    plants = workspace.plants
    value = np.asarray(references_of(workspace.judged, horizon=workspace.study.horizon).value)
    _, of_map, of_real = workspace.split(value)
    real = [
        Plant(name=name, parameters=dict(parameters), is_member=is_member, optimal_cost=cost)
        for name, parameters, is_member, cost in zip(
            plants.real.names, plants.real.parameters, plants.real.is_member, of_real, strict=True
        )
    ]
    warnings = [OUTSIDE.format(name=plant.name) for plant in real if not plant.is_member]
    if isinstance(plants.family, Finite) and workspace.study.real.count:
        warnings.append(FROM_CLASS)
    parameters = plants.family.parameters if isinstance(plants.family, AbstractFamily) else ()
    return JudgedPlants(
        parameters=[_parameter(p) for p in parameters],
        real=real,
        heat_map=None if plants.box is None else _heat_map(plants.box, of_map),
        warnings=warnings,
    )


def train(workspace: Workspace, name: str, *, key: str) -> TrainedPolicy:
    """Make the policy of a method, and save it; a class may have none of some kind."""
    study, path = workspace.study, workspace.policy_path(name, key)
    try:
        made = make_policy(
            name,
            study.methods.chosen[name],
            family=workspace.plants.family,
            members=workspace.members,
            horizon=study.horizon,
            seed=study.seed,
            checkpoints=workspace.folder / "checkpoints" / f"{name}-{key[:8]}",
        )
    except NotConvergedError as error:
        return TrainedPolicy(missing=str(error))
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
    return TrainedPolicy(file=path.as_posix(), checksum=checksum(workspace.folder / path), history=history)


def judge(workspace: Workspace, name: str, policy: AbstractPolicy | None, *, num_rollouts: int) -> Judged:
    """The gaps of a method on every plant; None knows the plant and has none."""
    mean = stderr = np.zeros(len(workspace.judged.A))
    if policy is not None:
        study = workspace.study
        key = key_for(study.seed, NOISE)
        estimate = gap(policy, workspace.judged, horizon=study.horizon, key=key, num_rollouts=num_rollouts)
        mean, stderr = estimate.mean, estimate.stderr
    of_class, of_map, of_real = (
        [Estimate(mean=m, stderr=s) for m, s in zip(*parts, strict=True)]
        for parts in zip(workspace.split(mean), workspace.split(stderr), strict=True)
    )
    box, found = workspace.plants.box, [*of_class, *of_map]
    worst = _argmax(found)
    gaps = MethodGaps(
        method=name,
        grid_worst=of_class[_argmax(of_class)],
        grid_mean=_mean(of_class),
        box_worst=None if box is None else found[worst],
        box_worst_at=None if box is None else _parameters_at(workspace, box, worst),
        real=of_real,
        real_worst=of_real[_argmax(of_real)],
        real_mean=_mean(of_real),
    )
    size = len(of_class)
    return Judged(
        gaps=gaps,
        heat_map=None if box is None else GapMap(method=name, gap=_table(box, [e.mean for e in of_map])),
        upper=float(upper_limit(np.asarray(mean[:size]), np.asarray(stderr[:size]), delta=DELTA)),
    )


def by_horizon(workspace: Workspace, name: str, policy: AbstractPolicy) -> Growth:
    """The largest gap over the class at every horizon."""
    horizons = workspace.study.evaluation.horizons
    estimates = gap_by_horizon(
        plan_for(policy, workspace.members, horizon=max(horizons)),
        workspace.members,
        horizons=horizons,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
    )
    values = [Estimate(mean=float(e.worst), stderr=float(e.worst_stderr)) for e in estimates]
    label = ABOUT[name].label
    return Growth(
        series=Series(method=name, label=label, kind="worst gap", horizons=list(horizons), values=values)
    )


def runs(workspace: Workspace, name: str, policy: AbstractPolicy | None) -> Runs:
    """One run on each of the first real plants; the noise of a plant is the same for all methods."""
    real, horizon, found = workspace.plants.real, workspace.study.horizon, []
    for index in range(min(workspace.study.evaluation.trajectories, len(real.names))):
        plant = take(real.systems, index)
        acting = FiniteHorizonLQG(plant, horizon) if policy is None else policy
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
    pair = take(references_of(corners.systems, horizon=study.horizon), [0, -1])
    kinds = ("bayes",) if is_small(pair, num_steps=2) else ("two-point",)
    bound = minimax_lower_bound(corners, horizon=study.horizon, kinds=kinds)
    set_by = list(bound.pair)
    horizons, values = [study.horizon], [float(bound.value)]
    if study.evaluation.horizons and bound.kind == "bayes" and bound.num_steps == 2:  # cheap at any horizon
        horizons = list(study.evaluation.horizons)
        references = references_of(corners.subset(set_by).systems, horizon=max(horizons))
        shorter = [shorten(references, sooner=max(horizons) - horizon) for horizon in horizons]
        values = [float(belief_bound(each, num_steps=2, tolerance=BOUND_TOLERANCE).value) for each in shorter]
    return LowerBound(
        value=float(bound.value),
        kind=bound.kind,
        set_by=[corners.describe(index) for index in dict.fromkeys(set_by)],
        series=Series(
            method=None,
            label="No policy is better",
            kind="lower bound",
            horizons=horizons,
            values=[Estimate(mean=value, stderr=0.0) for value in values],
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


def _parameter(parameter: Any) -> Parameter:
    return Parameter(name=parameter.name, unit=parameter.unit, low=parameter.low, high=parameter.high)


def _heat_map(box: BoxMap, costs: Sequence[float]) -> HeatMap:
    return HeatMap(
        x=_parameter(box.x),
        y=_parameter(box.y),
        x_values=box.x_values.tolist(),
        y_values=box.y_values.tolist(),
        held=dict(box.held),
        optimal_cost=_table(box, costs),
        maps=[],
    )


def _table(box: BoxMap, values: Sequence[float]) -> list[list[float]]:
    """The values of a map, a row for each value of the second parameter; plants beyond it are left out."""
    rows, columns = len(box.y_values), len(box.x_values)
    return np.asarray(values[: rows * columns]).reshape(rows, columns).tolist()


def _argmax(estimates: Sequence[Estimate]) -> int:
    return int(np.argmax([estimate.mean for estimate in estimates]))


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    """Plants share noise: the error of their mean is at most the mean of their errors."""
    mean, stderr = (np.mean([getattr(e, part) for e in estimates]) for part in ("mean", "stderr"))
    return Estimate(mean=float(mean), stderr=float(stderr))


def _parameters_at(workspace: Workspace, box: BoxMap, index: int) -> dict[str, float]:
    """Of the plant of this number among the class and then the map."""
    size = len(workspace.members)
    members, row = (workspace.members, index) if index < size else (box.members, index - size)
    return dict(zip(members.names, np.asarray(members.parameters[row]).tolist(), strict=True))


def _corners(members: Finite) -> list[int]:
    """Members whose parameters are all extreme, a few of them; members evenly spaced if there are none."""
    parameters = np.asarray(members.parameters)
    extreme = np.all((parameters == parameters.min(axis=0)) | (parameters == parameters.max(axis=0)), axis=1)
    rows = np.flatnonzero(extreme)
    rows = rows if len(rows) > 1 else np.arange(len(members))
    return np.unique(
        rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_CORNERS)).round().astype(int)]
    ).tolist()
