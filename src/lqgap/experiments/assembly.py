"""From the results of all units of work to the record of a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lqgap.experiments.methods import METHODS
from lqgap.experiments.recommendation import Candidate, Recommendation, is_within_noise, recommend
from lqgap.experiments.record import (
    FORMAT,
    Adaptation,
    Audit,
    Bracket,
    Gaps,
    HeatMap,
    HorizonStudy,
    LeftOut,
    Method,
    MethodGaps,
    Plant,
    Record,
    Response,
    Series,
    Trajectory,
)
from lqgap.experiments.responses import UNABLE
from lqgap.experiments.results import Judged, JudgedPlants, LowerBound, Theory, TrainedPolicy, WorstGap
from lqgap.experiments.study import Study
from lqgap.experiments.units import DELTA

FEW = 3.0  # times the worst gap over the class: beyond it, the class does not stand for the ranges
MATTERS = 0.05  # of the smallest optimal cost of a real plant: a gap below it needs no more members


@dataclass(frozen=True)
class Measured:
    """All that is known of a method."""

    trained: TrainedPolicy
    judged: Judged
    runs: Sequence[Trajectory]
    growth: Series | None
    adaptations: Sequence[Adaptation]
    response: Response | None = None
    unfit: str | None = None  # what speaks against it


@dataclass(frozen=True)
class Results:
    """All that units of work found."""

    audit: Audit
    plants: JudgedPlants
    methods: Mapping[str, Measured]
    left_out: Mapping[str, str]  # methods that failed, and why
    lower: LowerBound | None  # None if bounds were not asked for
    theory: Theory
    worst: WorstGap | None = None  # of the recommended method


def assemble(
    study: Study,
    results: Results,
    *,
    warnings: Sequence[str],
    timings: Mapping[str, float],
    versions: Mapping[str, str],
) -> Record:
    """The record, with a warning for every method that is left out."""
    plants, methods = results.plants, results.methods
    found = choose(methods)
    gaps = [each.judged.gaps for each in methods.values()]
    if results.worst is not None:
        gaps = [_sharpen(each, results.worst) if each.method == found.method else each for each in gaps]
    left_out = [
        LeftOut(name=name, label=METHODS[name].label, reason=why) for name, why in results.left_out.items()
    ]
    return Record(
        format=FORMAT,
        title=study.heading,
        study=study.to_toml(),
        seed=study.seed,
        precision="float64",
        versions=dict(versions),
        parameters=plants.parameters,
        signals=plants.signals,
        warnings=[
            *plants.warnings,
            *warnings,
            *(f"{each.label} is left out: {each.reason}" for each in left_out),
            *(f"{METHODS[n].label} is unfit: {m.unfit}" for n, m in methods.items() if m.unfit == UNABLE),
            *_disagreement(gaps, found),
            *_too_few_members(study, plants.real, gaps, found),
        ],
        methods=[_method(name, each) for name, each in methods.items()],
        left_out=left_out,
        real=plants.real,
        recommended=found.method,
        equals=list(found.equals),
        better=found.better,
        audit=results.audit,
        gaps=Gaps(horizon=study.horizon, num_rollouts=study.evaluation.rollouts, methods=gaps),
        horizons=_horizons(results),
        heat_map=_heat_map(results),
        bracket=None if found.method is None else _bracket(study, results, found.method),
        trajectories=[run for each in methods.values() for run in each.runs],
        responses=[each.response for each in methods.values() if each.response is not None],
        adaptations=[told for each in methods.values() for told in each.adaptations] or None,
        bounds=results.theory.sheet,
        timings=dict(timings),
    )


def choose(methods: Mapping[str, Measured]) -> Recommendation:
    """What is recommended of all methods that could be put on a plant."""
    return recommend(
        {
            name: Candidate(m.judged.gaps, m.judged.totals, m.trained.file is not None, m.unfit is None)
            for name, m in methods.items()
            if METHODS[name].kind != "reference"
        }
    )


def _sharpen(gaps: MethodGaps, worst: WorstGap) -> MethodGaps:
    """The gaps with those of the bracket in their places: one policy has one figure."""
    in_ranges = {"box_worst": worst.worst, "box_worst_at": worst.worst_at} if gaps.box_worst else {}
    return gaps.model_copy(update={"grid_worst": worst.of_class, **in_ranges})


def _method(name: str, measured: Measured) -> Method:
    method = METHODS[name]
    return Method(
        name=name,
        label=method.label,
        kind=method.kind,
        description=method.about,
        history=measured.trained.history,
        policy_file=measured.trained.file,
        has_improved=measured.trained.has_improved,
        unfit=measured.unfit,
        cut=measured.trained.cut or measured.judged.cut,
        margins=measured.judged.margins,
    )


def _disagreement(gaps: Sequence[MethodGaps], found: Recommendation) -> list[str]:
    """Without a search of the ranges the choice rests on the class: say if the real plants disagree."""
    real = {part.method: part.real_worst for part in gaps if METHODS[part.method].kind != "reference"}
    if found.method is None or any(part.box_worst is not None for part in gaps):
        return []
    best = min(real, key=lambda name: real[name].mean)
    more = real[found.method].mean - real[best].mean
    if is_within_noise(more, math.hypot(real[best].stderr, real[found.method].stderr), real[best].mean):
        return []
    return [
        f"on the real plants {METHODS[best].label} has the smaller worst gap ({real[best].mean:.3g} against "
        f"{real[found.method].mean:.3g} of {METHODS[found.method].label}), and there are no ranges to search"
    ]


def _too_few_members(
    study: Study, real: Sequence[Plant], gaps: Sequence[MethodGaps], found: Recommendation
) -> list[str]:
    """Whether the members are too far from each other to stand for the ranges, and that costs something."""
    part = next((part for part in gaps if part.method == found.method), None)
    if part is None or part.box_worst is None or part.grid_worst is None:
        return []
    least = MATTERS * min((plant.optimal_cost for plant in real), default=0.0)
    if part.box_worst.mean <= max(FEW * part.grid_worst.mean, least):
        return []
    ratio = part.box_worst.mean / part.grid_worst.mean if part.grid_worst.mean > 0 else math.inf
    remedy = "give [grid] more points" if study.grid.points == "auto" else '[grid] points = "auto" adds them'
    return [
        f"more members are needed: the worst gap of {METHODS[part.method].label} in the ranges is "
        f"{ratio:.2g} times that over the class ({remedy})"
    ]


def _horizons(results: Results) -> HorizonStudy | None:
    series = [each.growth for each in results.methods.values() if each.growth is not None]
    bound = [] if results.lower is None else [results.lower.series]
    over = "ranges" if results.plants.parameters else "class"
    return HorizonStudy(series=[*series, *bound], over=over) if series else None


def _heat_map(results: Results) -> HeatMap | None:
    if results.plants.heat_map is None:
        return None
    maps = [
        each.judged.heat_map
        for name, each in results.methods.items()
        if METHODS[name].kind != "reference" and each.judged.heat_map is not None
    ]
    return results.plants.heat_map.model_copy(update={"maps": maps})


def _bracket(study: Study, results: Results, method: str) -> Bracket | None:
    """Both ends over the ranges, if there are some, else both over the class."""
    lower, found = results.lower, results.worst
    if lower is None or found is None:
        return None
    return Bracket(
        method=method,
        horizon=study.horizon,
        num_members=found.num_plants,
        lower=lower.value,
        kind=lower.kind,
        set_by=lower.set_by,
        worst=found.worst,
        upper=found.upper,
        confidence=lower.confidence - DELTA,
        factor=found.upper / lower.value if lower.value > 0 else float("inf"),
        over=lower.over,
        bounds_class=lower.bounds_class,
        reasons=lower.reasons,
        cut=lower.cut or found.cut,
    )
