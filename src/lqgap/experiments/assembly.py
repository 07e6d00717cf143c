"""From the results of all units of work to the record of a study."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lqgap.experiments.methods import ABOUT
from lqgap.experiments.plants import BoxMap
from lqgap.experiments.record import (
    FORMAT,
    Adaptation,
    Audit,
    BoundsSheet,
    Bracket,
    Estimate,
    Event,
    GapMap,
    Gaps,
    HeatMap,
    HorizonStudy,
    Look,
    Method,
    MethodGaps,
    Parameter,
    Plant,
    Record,
    Series,
    Trajectory,
)
from lqgap.experiments.units import Workspace
from lqgap.simulators import AbstractFamily, Finite
from lqgap.theory.certificates.bracket import upper_limit

DELTA = 0.05  # with which the upper end of the bracket may fail
OUTSIDE = (
    "{name} is outside of the family: no simulator is like it (realizability fails), and what is said of the "
    "worst over the box does not hold for it"
)
FROM_CLASS = "the real plants are drawn from the class itself: no method meets a plant it has not seen"

Results = Mapping[str, Any]  # of the units, by name


def assemble(
    workspace: Workspace,
    results: Results,
    *,
    warnings: Sequence[str],
    timings: Mapping[str, float],
    versions: Mapping[str, str],
) -> Record:
    """The record; a method that could not be made is left out, with a warning."""
    study = workspace.study
    names = [name for name in study.methods.chosen if f"gaps {name}" in results]
    gaps = [_method_gaps(workspace, name, results[f"gaps {name}"]) for name in names]
    recommended = _recommend(gaps)
    return Record(
        format=FORMAT,
        title=study.title or "A study",
        study=study.to_toml(),
        seed=study.seed,
        precision="float64",
        versions=dict(versions),
        parameters=_parameters(workspace),
        warnings=[*_plant_warnings(workspace), *warnings],
        methods=[_method(name, results.get(f"train {name}", {})) for name in names],
        real=_real(workspace, results["optimum"]["value"]["real"]),
        recommended=recommended,
        audit=Audit.model_validate(results["audit"]["audit"]),
        gaps=Gaps(horizon=study.horizon, num_rollouts=study.evaluation.rollouts, methods=gaps),
        horizons=_horizons(workspace, names, results),
        heat_map=_heat_map(workspace, names, results),
        bracket=_bracket(workspace, recommended, results),
        trajectories=[
            Trajectory(method=name, **run) for name in names for run in results.get(f"runs {name}", ())
        ],
        adaptations=[
            Adaptation(method=name, **{**trace, "events": [Event(**event) for event in trace["events"]]})
            for name in names
            for trace in results.get(f"horizons {name}", {}).get("traces", ())
        ]
        or None,
        bounds=_bounds(results),
        timings=dict(timings),
    )


def _method(name: str, made: Mapping[str, Any]) -> Method:
    about = ABOUT[name]
    return Method(
        name=name,
        label=about.label,
        kind=about.kind,
        description=about.description,
        history=[Look(**look) for look in made.get("history", ())],
        policy_file=made.get("file"),
    )


def _parameters(workspace: Workspace) -> list[Parameter]:
    if not isinstance(workspace.family, AbstractFamily):
        return []
    return [Parameter(name=p.name, unit=p.unit, low=p.low, high=p.high) for p in workspace.family.parameters]


def _real(workspace: Workspace, values: Sequence[float]) -> list[Plant]:
    real = workspace.real
    rows = zip(real.names, real.parameters, real.is_member, values, strict=True)
    return [
        Plant(name=name, parameters=dict(parameters), is_member=is_member, optimal_cost=value)
        for name, parameters, is_member, value in rows
    ]


def _plant_warnings(workspace: Workspace) -> list[str]:
    real = workspace.real
    outside = [name for name, inside in zip(real.names, real.is_member, strict=True) if not inside]
    drawn_from_class = (
        [FROM_CLASS] if isinstance(workspace.family, Finite) and workspace.study.real.count else []
    )
    return [*(OUTSIDE.format(name=name) for name in outside), *drawn_from_class]


def _worst(mean: Sequence[float], stderr: Sequence[float]) -> tuple[int, Estimate]:
    index = int(np.argmax(mean))
    return index, Estimate(mean=mean[index], stderr=stderr[index])


def _mean(mean: Sequence[float], stderr: Sequence[float]) -> Estimate:
    """Plants share noise: the error of their mean is at most the mean of their errors."""
    return Estimate(mean=float(np.mean(mean)), stderr=float(np.mean(stderr)))


def _method_gaps(workspace: Workspace, name: str, result: Mapping[str, Any]) -> MethodGaps:
    mean, stderr = result["mean"], result["stderr"]
    box_worst, box_worst_at = None, None
    if workspace.box is not None:
        index, box_worst = _worst(mean["grid"] + mean["map"], stderr["grid"] + stderr["map"])
        box_worst_at = _parameters_at(workspace, workspace.box, index)
    return MethodGaps(
        method=name,
        grid_worst=_worst(mean["grid"], stderr["grid"])[1],
        grid_mean=_mean(mean["grid"], stderr["grid"]),
        box_worst=box_worst,
        box_worst_at=box_worst_at,
        real=[Estimate(mean=m, stderr=s) for m, s in zip(mean["real"], stderr["real"], strict=True)],
        real_worst=_worst(mean["real"], stderr["real"])[1],
        real_mean=_mean(mean["real"], stderr["real"]),
    )


def _parameters_at(workspace: Workspace, box: BoxMap, index: int) -> dict[str, float]:
    """Of the plant of this number among the class and then the map."""
    size = len(workspace.members)
    members, row = (workspace.members, index) if index < size else (box.members, index - size)
    return dict(zip(members.names, np.asarray(members.parameters[row]).tolist(), strict=True))


def _recommend(gaps: Sequence[MethodGaps]) -> str | None:
    """The method with the smallest worst gap over the box, or the class; the real plants have no say."""
    candidates = [part for part in gaps if ABOUT[part.method].kind != "reference"]

    def worst(part: MethodGaps) -> float:
        found = part.box_worst or part.grid_worst
        return np.inf if found is None else found.mean

    return min(candidates, key=worst).method if candidates else None


def _horizons(workspace: Workspace, names: Sequence[str], results: Results) -> HorizonStudy | None:
    horizons = list(workspace.study.evaluation.horizons)
    series = [
        Series(
            method=name,
            label=ABOUT[name].label,
            kind="regret + D_h" if ABOUT[name].kind == "adaptive" else "worst gap",
            horizons=horizons,
            values=[Estimate(**value) for value in results[f"horizons {name}"]["worst"]],
        )
        for name in names
        if results.get(f"horizons {name}", {}).get("worst")
    ]
    if not series:
        return None
    lower = results["lower bound"]
    values = lower["by_horizon"] or [lower["value"]]
    bound = Series(
        method=None,
        label="No policy is better",
        kind="lower bound",
        horizons=horizons if lower["by_horizon"] else [workspace.study.horizon],
        values=[Estimate(mean=value, stderr=0.0) for value in values],
    )
    return HorizonStudy(series=[*series, bound])


def _heat_map(workspace: Workspace, names: Sequence[str], results: Results) -> HeatMap | None:
    box = workspace.box
    if box is None:
        return None
    shape = (len(box.y_values), len(box.x_values))

    def table(values: Sequence[float]) -> list[list[float]]:
        return np.asarray(values[: shape[0] * shape[1]]).reshape(shape).tolist()

    axes = [Parameter(name=p.name, unit=p.unit, low=p.low, high=p.high) for p in (box.x, box.y)]
    return HeatMap(
        x=axes[0],
        y=axes[1],
        x_values=box.x_values.tolist(),
        y_values=box.y_values.tolist(),
        held=dict(box.held),
        optimal_cost=table(results["optimum"]["value"]["map"]),
        maps=[
            GapMap(method=name, gap=table(results[f"gaps {name}"]["mean"]["map"]))
            for name in names
            if ABOUT[name].kind != "reference"
        ],
    )


def _bracket(workspace: Workspace, method: str | None, results: Results) -> Bracket | None:
    if method is None:
        return None
    lower, found = results["lower bound"], results[f"gaps {method}"]
    mean, stderr = (np.asarray(found[part]["grid"]) for part in ("mean", "stderr"))
    upper = upper_limit(mean, stderr, delta=DELTA)
    return Bracket(
        method=method,
        horizon=workspace.study.horizon,
        num_members=len(workspace.members),
        lower=lower["value"],
        kind=lower["kind"],
        set_by=list(lower["set_by"]),
        worst=_worst(mean.tolist(), stderr.tolist())[1],
        upper=upper,
        confidence=1 - DELTA,
        factor=upper / lower["value"] if lower["value"] > 0 else float("inf"),
    )


def _bounds(results: Results) -> BoundsSheet | None:
    sheet = results["bounds"].get("sheet")
    return None if sheet is None else BoundsSheet.model_validate(sheet)
