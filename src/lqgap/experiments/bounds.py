"""What no policy can beat, and what the theory promises, as parts of the record."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from lqgap.batches import take
from lqgap.errors import LqgapError
from lqgap.evaluation.gap import references_of
from lqgap.evaluation.horizons import shorten
from lqgap.evaluation.reference import Reference
from lqgap.experiments import estimates
from lqgap.experiments.record import BoundRow, BoundsSheet, Series
from lqgap.experiments.results import LowerBound, Theory
from lqgap.experiments.study import Study
from lqgap.experiments.units import Workspace
from lqgap.progress import release_memory
from lqgap.simulators import AbstractFamily, Finite
from lqgap.systems import LQG
from lqgap.theory import bounds, minimax_lower_bound
from lqgap.theory.lower_bounds.belief import belief_bound, is_small
from lqgap.theory.lower_bounds.bound import LowerBound as ClassBound
from lqgap.theory.lower_bounds.ranges import RangesBound, bound_ranges

BOUND_TOLERANCE = 1e-4  # relative, of the search over priors, each of which gives a bound
MAX_CORNERS = 4  # members that the lower bound is computed for


def lower_bound(workspace: Workspace) -> LowerBound:
    """What no policy can beat over the class or, if there are some, over the ranges; at other horizons, too.

    The bound of some corners holds for the class and for the ranges, that of the ranges for them alone.
    """
    release_memory(programs=True)  # those of methods: the bound needs the memory
    study, family = workspace.study, workspace.plants.family
    corners = workspace.members.subset(_corners(workspace.members))
    # The sharpest kind if its sums are small enough, or else the one that always is.
    pair = take(_references(workspace, corners.systems, study.horizon), [0, -1])
    kinds = ("bayes",) if is_small(pair, num_steps=2) else ("two-point",)
    bound = minimax_lower_bound(corners, horizon=study.horizon, kinds=kinds, ends=study.ends)
    set_by = [corners.describe(index) for index in dict.fromkeys(bound.pair)]
    values = _values_by_horizon(workspace, corners, bound)
    if isinstance(family, AbstractFamily):
        bound = bound_ranges(family, bound, horizon=study.horizon, ends=study.ends)
        set_by = set_by if bound.is_inherited else [bound.prior]
        _raise_by_ranges(study, values, bound)
    return LowerBound(
        value=float(bound.value),
        kind=bound.kind,
        set_by=set_by,
        series=Series(
            method=None,
            label="No policy is better",
            kind="lower bound",
            horizons=sorted(values),
            values=[estimates.exact(values[horizon]) for horizon in sorted(values)],
        ),
        over=bound.over,
        bounds_class=bound.over == "class" or bound.is_inherited,
        confidence=bound.confidence,
        reasons=list(bound.reasons),
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


def _values_by_horizon(workspace: Workspace, corners: Finite, bound: ClassBound) -> dict[int, float]:
    """A bound of corners at the study's horizon and, where that is cheap, at all others."""
    study, value = workspace.study, float(bound.value)
    horizons = study.evaluation.horizons
    if not (horizons and bound.kind == "bayes" and bound.num_steps == 2):
        return {study.horizon: value}
    if not study.ends:  # it is of the same two steps
        return dict.fromkeys([study.horizon, *horizons], value)
    references = _references(workspace, corners.subset(list(bound.pair)).systems, max(horizons))
    shorter = [shorten(references, sooner=max(horizons) - horizon) for horizon in horizons]
    found = [belief_bound(each, num_steps=2, tolerance=BOUND_TOLERANCE) for each in shorter]
    return {horizon: float(each.value) for horizon, each in zip(horizons, found, strict=True)}


def _raise_by_ranges(study: Study, values: dict[int, float], bound: RangesBound) -> None:
    """Put a bound of the ranges in place of smaller values at the horizons where it holds."""
    for horizon in (study.horizon, *study.evaluation.horizons):
        # Of every horizon it would be a program of its own; in a task that goes on gaps only grow.
        if horizon == study.horizon or (horizon > study.horizon and not study.ends):
            values[horizon] = max(values.get(horizon, 0.0), float(bound.value))


def _references(workspace: Workspace, systems: LQG, horizon: int) -> Reference:
    return references_of(systems, horizon=horizon, ends=workspace.study.ends)


def _corners(members: Finite) -> list[int]:
    """Members whose parameters are all extreme, a few of them; members evenly spaced if there are none."""
    parameters = np.asarray(members.parameters)
    extreme = np.all((parameters == parameters.min(axis=0)) | (parameters == parameters.max(axis=0)), axis=1)
    rows = np.flatnonzero(extreme)
    rows = rows if len(rows) > 1 else np.arange(len(members))
    return np.unique(
        rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_CORNERS)).round().astype(int)]
    ).tolist()
