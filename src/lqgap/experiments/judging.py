"""The gaps of a method on all plants, the worst that a search of the ranges finds, and whether it is fit.

All methods are evaluated on the class, on plants of the ranges and on the real ones, on the same noise. From
the worst of the first two a search climbs, on the same noise; what it finds is evaluated on fresh noise,
which is again the same for all methods. The worst gap in the ranges is the largest of the class, which nobody
chose, and of what was found; there may be plants that are worse. For the bracket these plants meet further
noise, and the limit of their gaps holds for all of them at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lqgap.batches import join, take
from lqgap.errors import NotConvergedError
from lqgap.evaluation import GapEstimate, gap
from lqgap.evaluation.estimate import DIVERGED
from lqgap.evaluation.worst import Search
from lqgap.experiments import estimates
from lqgap.experiments.endurance import LongRun, run_on
from lqgap.experiments.fitness import find_trouble
from lqgap.experiments.methods.base import AbstractMethod, Knowing
from lqgap.experiments.plants import BoxMap, key_for, pad_to
from lqgap.experiments.record import GapMap, HeatMap, MethodGaps, Parameter, Plant, Signals
from lqgap.experiments.results import Judged, JudgedPlants, WorstGap
from lqgap.experiments.robustness import least_margins
from lqgap.experiments.units import DELTA, FRESH, NOISE, Workspace, fill_batches
from lqgap.policies import AbstractPolicy, Zero
from lqgap.simulators import AbstractFamily, Finite
from lqgap.systems import LQG

SEARCH_ROLLOUTS = 64
SHARPER = 4  # times as many rollouts of the bracket's upper end
OUTSIDE = (
    "{name} is outside the family: no simulator matches it (realizability fails), and the worst gap over the "
    "ranges does not cover it"
)
FROM_CLASS = "the real plants are drawn from the class itself: every method has seen all of them"
LIMITED = "inputs are limited: the audit and the bounds of the theory are about loops without limits"
UNSOLVABLE = "{count} of {total} plants of the ranges have no optimum, and nothing is said of them: {first}"


def optimum(workspace: Workspace) -> JudgedPlants:
    """What a controller that knows its plant costs, and what zero input does, on every plant."""
    plants = workspace.plants
    _, tried_solvable, real_solvable = workspace.split(workspace.is_solvable)
    if not np.all(real_solvable):
        index = len(workspace.is_solvable) - len(real_solvable) + int(np.argmin(real_solvable))
        raise NotConvergedError(f"{workspace.describe(index)} has no optimum: no controller holds it")
    idle = gaps_of(workspace, _zero(workspace.judged), workspace.judged, _num_rollouts(workspace))
    _, of_tried, of_real = workspace.split(idle.value)
    real = [
        Plant(name=name, parameters=dict(parameters), is_member=is_member, optimal_cost=float(cost))
        for name, parameters, is_member, cost in zip(
            plants.real.names, plants.real.parameters, plants.real.is_member, of_real, strict=True
        )
    ]
    warnings = [OUTSIDE.format(name=plant.name) for plant in real if not plant.is_member]
    if isinstance(plants.family, Finite) and workspace.study.real.count:
        warnings.append(FROM_CLASS)
    if plants.limits is not None:
        warnings.append(LIMITED)
    if plants.tried is not None and not np.all(tried_solvable):
        first = plants.tried.describe(int(np.argmin(tried_solvable)))
        count = int(np.sum(~tried_solvable))
        warnings.append(UNSOLVABLE.format(count=count, total=len(tried_solvable), first=first))
    costs = np.where(tried_solvable, of_tried, np.nan)
    parameters = plants.family.parameters if isinstance(plants.family, AbstractFamily) else ()
    return JudgedPlants(
        parameters=[_parameter(p) for p in parameters],
        signals=Signals.model_validate(asdict(plants.signals), strict=False),
        real=real,
        heat_map=None if plants.box is None else _heat_map(plants.box, costs),
        idle=idle.mean.tolist(),
        warnings=warnings,
    )


def judge(
    workspace: Workspace,
    name: str,
    policy: AbstractPolicy | Knowing,
    *,
    num_rollouts: int,
    idle: Sequence[float],
    num_climbs: int = AbstractMethod.num_climbs,
) -> Judged:
    """The gaps of a method, and what speaks against it.

    Args:
        idle: gaps of zero input.
        num_climbs: of the search.
    """
    if isinstance(policy, Knowing):
        found, searched, unfit, long_run = _no_gaps(len(workspace.judged.A)), None, None, LongRun()
    else:
        found = gaps_of(workspace, policy, workspace.judged, num_rollouts)
        searched = _search(workspace, policy, found, num_rollouts, num_climbs)
        unfit = _find_trouble(workspace, found, searched, np.asarray(idle))
        worst = searched.members if searched else None
        long_run = LongRun() if unfit else run_on(workspace, policy, worst, num_rollouts=num_rollouts)
        unfit = unfit or long_run.trouble
    of_class, of_tried, of_real = (found.subset(rows) for rows in workspace.split(np.arange(len(found.mean))))
    ranges = _with(of_class, searched.gaps) if searched else of_class
    row = estimates.argworst(ranges)
    totals = _larger(ranges.totals[row], of_real.totals[estimates.argworst(of_real)])
    return Judged(
        gaps=MethodGaps(
            method=name,
            grid_worst=estimates.of_worst(of_class),
            grid_mean=estimates.of_mean(of_class),
            box_worst=None if workspace.plants.tried is None else estimates.of_worst(ranges),
            box_worst_at=_place([workspace.members, searched.members], row) if searched else None,
            real=estimates.of_each(of_real),
            real_worst=estimates.of_worst(of_real),
            real_mean=estimates.of_mean(of_real),
            later_worst=None if long_run.totals is None else estimates.of_runs(long_run.totals),
        ),
        heat_map=_gap_map(workspace, name, of_tried),
        found=np.asarray(searched.members.parameters).tolist() if searched else [],
        totals=(totals if long_run.totals is None else _larger(totals, long_run.totals)).tolist(),
        unfit=unfit,
        margins=least_margins(workspace, policy),
    )


def worst_gap(
    workspace: Workspace, policy: AbstractPolicy, found: Sequence[Sequence[float]], *, num_rollouts: int
) -> WorstGap:
    """The worst gap over the class and what a search found, as the bracket's upper end, from more rollouts.

    Args:
        found: parameters of plants, chosen by other noise; none without ranges.
        num_rollouts: by which they were chosen.
    """
    family, groups = workspace.plants.family, [workspace.members]
    if isinstance(family, AbstractFamily) and found:
        groups.append(family.members(found))
    systems = join([pad_to(group.systems, workspace.judged.num_states) for group in groups])
    gaps = gaps_of(workspace, policy, systems, SHARPER * num_rollouts, noise="bracket")
    return WorstGap(
        worst=estimates.of_worst(gaps),
        worst_at=_place(groups, estimates.argworst(gaps)),
        of_class=estimates.of_worst(gaps.subset(np.arange(len(workspace.members)))),
        upper=gaps.upper_limit(DELTA),
        num_plants=len(systems.A),
    )


def gaps_of(
    workspace: Workspace, policy: AbstractPolicy, systems: LQG, num_rollouts: int, *, noise: str = NOISE
) -> GapEstimate:
    """The gaps on any number of plants, in batches of one size."""
    study, count = workspace.study, len(systems.A)
    parts = [
        gap(
            policy,
            take(systems, batch),
            horizon=study.horizon,
            key=key_for(study.seed, noise),
            num_rollouts=num_rollouts,
            ends=study.ends,
        )
        for batch in fill_batches(np.arange(count))
    ]
    return estimates.joined(parts, count)


@dataclass(frozen=True)
class Searched:
    """Plants of the ranges with large gaps, and these gaps on fresh noise."""

    members: Finite
    gaps: GapEstimate


def _search(
    workspace: Workspace, policy: AbstractPolicy, found: GapEstimate, num_rollouts: int, num_climbs: int
) -> Searched | None:
    """What a search from the worst of the class and of the plants that were tried comes to."""
    family, tried, study = workspace.plants.family, workspace.plants.tried, workspace.study
    if tried is None or not isinstance(family, AbstractFamily):
        return None
    count = min(num_rollouts, SEARCH_ROLLOUTS)
    starts = np.concatenate([np.asarray(each.parameters) for each in (workspace.members, tried)])
    usable = np.flatnonzero(workspace.is_solvable[: len(starts)])
    search = Search(
        policy,
        family,
        key_for(study.seed, NOISE),
        study.horizon,
        count,
        ends=study.ends,
        num_climbs=num_climbs,
        by_derivative=False,
    )
    rows = search.climb_from(starts[usable], found.totals[usable, :count].mean(axis=1))
    members = family.members(rows)
    return Searched(members, gaps_of(workspace, policy, members.systems, num_rollouts, noise=FRESH))


def _find_trouble(
    workspace: Workspace, found: GapEstimate, searched: Searched | None, idle: np.ndarray
) -> str | None:
    """On the plants that all methods are evaluated on, or on those that the search found."""
    informed = _losses_of_the_informed(workspace, workspace.judged, len(found.totals[0]), NOISE)
    trouble = find_trouble(found, idle, workspace.describe, informed)
    if trouble is None and searched is not None:
        systems, members = searched.members.systems, searched.members
        no_input = gaps_of(workspace, _zero(systems), systems, _num_rollouts(workspace), noise=FRESH)
        informed = _losses_of_the_informed(workspace, systems, len(searched.gaps.totals[0]), FRESH)
        trouble = find_trouble(searched.gaps, no_input.mean, members.describe, informed)
    return trouble


def _losses_of_the_informed(
    workspace: Workspace, systems: LQG, count: int, noise: str
) -> Callable[[int], np.ndarray] | None:
    """Which runs of a plant the controller that knows it loses within the limits; None without limits."""
    if not workspace.plants.has_limits:
        return None

    def lost(row: int) -> np.ndarray:
        policy, plant = workspace.informed(take(systems, row)), take(systems, np.array([row]))
        found = gaps_of(workspace, policy, plant, count, noise=noise)
        return ~(found.totals[0, :count] <= DIVERGED * found.value[0])

    return lost


def _larger(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The runs that cost more on average."""
    return other if np.mean(other) > np.mean(one) else one


def _with(of_class: GapEstimate, found: GapEstimate) -> GapEstimate:
    """The gaps of the class and those found; a tail that is heavy on any plant stays so."""
    both = estimates.joined([of_class, found])
    is_light = both.has_light_tail and of_class.has_light_tail
    return replace(both, has_light_tail=is_light)


def _place(groups: Sequence[Finite], row: int) -> dict[str, float]:
    """The parameters of a plant of this number, of the class or then of those found."""
    values = np.concatenate([each.parameters for each in groups])[row]
    return dict(zip(groups[0].names, values.tolist(), strict=True))


def _zero(systems: LQG) -> Zero:
    return Zero(num_inputs=systems.num_inputs, num_outputs=systems.num_outputs)


def _num_rollouts(workspace: Workspace) -> int:
    return workspace.study.evaluation.rollouts


def _parameter(parameter: Any) -> Parameter:
    return Parameter(name=parameter.name, unit=parameter.unit, low=parameter.low, high=parameter.high)


def _heat_map(box: BoxMap, costs: np.ndarray) -> HeatMap:
    return HeatMap(
        x=_parameter(box.x),
        y=_parameter(box.y),
        x_values=box.x_values.tolist(),
        y_values=box.y_values.tolist(),
        held=dict(box.held),
        optimal_cost=_table(box, costs),
        maps=[],
    )


def _gap_map(workspace: Workspace, name: str, found: GapEstimate) -> GapMap | None:
    """Means, or where they cannot be known what nine in ten runs cost at most."""
    box = workspace.plants.box
    if box is None:
        return None
    is_mean = found.has_light_tail
    values = found.mean if is_mean else found.quantiles[:, -1]
    values = np.where(workspace.split(workspace.is_solvable)[1], values, np.nan)
    return GapMap(method=name, gap=_table(box, values), is_mean=is_mean)


def _table(box: BoxMap, values: np.ndarray) -> list[list[float]]:
    """The values of a map; plants beyond it are left out."""
    rows, columns = box.shape
    return values[: rows * columns].reshape(box.shape).tolist()


def _no_gaps(count: int) -> GapEstimate:
    """Of a controller that knows the plant."""
    none, none_each = np.zeros(count), np.zeros((count, 2))
    return GapEstimate(
        mean=none,
        stderr=none,
        totals=none_each,
        per_step=none_each,
        value=none,
        num_rollouts=2,
        has_light_tail=True,
    )
