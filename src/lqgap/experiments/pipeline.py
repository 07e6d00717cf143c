"""The sequence of the units of work of a study.

class (grown where it is needed) -> audit -> optimum -> policies (trained, with checkpoints)
-> gaps on common noise, with a search of the ranges -> runs -> gap against horizon -> lower bound and bounds
-> the worst gap of the recommended method, which is the upper end of the bracket
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lqgap.errors import CorruptFileError, LqgapError, NotConvergedError, StorageError
from lqgap.experiments import bounds, judging, units
from lqgap.experiments.adaptation import adapt
from lqgap.experiments.assembly import Measured, Results, choose
from lqgap.experiments.members import audit, grow
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod
from lqgap.experiments.provenance import checksum
from lqgap.experiments.responses import make_schedule, respond_to_steps
from lqgap.experiments.results import (
    Adapted,
    AuditedClass,
    GrownClass,
    Growth,
    Judged,
    JudgedPlants,
    LowerBound,
    Responded,
    Runs,
    Theory,
    TrainedPolicy,
    WorstGap,
)
from lqgap.experiments.work import Work
from lqgap.policy_files import load_policy


@dataclass(frozen=True)
class Contender:
    """A method that could be made, and its gaps.

    Args:
        policy_fn: reads or makes the policy, which a run that goes on may not need.
        configuration: what determines the policy.
    """

    name: str
    method: AbstractMethod
    trained: TrainedPolicy
    policy_fn: Callable[[], Any]
    configuration: dict[str, Any]
    judged: Judged


def run_audit(work: Work, folder: Path) -> tuple[units.Workspace, AuditedClass]:
    """The study with the class that its audit leaves, and the audit."""
    task = work.study.model_dump(include={"horizon", "ends"})
    work.ahead = (*work.study.methods.chosen, *(("bounds",) if work.study.evaluation.bounds else ()))
    grown = work.do(GrownClass, "class", task, lambda held: grow(work.plants, held))
    work.plants = work.plants.with_members(grown.added)
    found = work.do(AuditedClass, "audit", task, lambda _: audit(work.plants, grown=grown.action))
    return units.Workspace(work.plants, found.kept, folder), found


def judge_plants(work: Work, workspace: units.Workspace) -> JudgedPlants:
    """The plants that methods are evaluated on."""
    return work.do(JudgedPlants, "optimum", _judged_by(work), lambda _: judging.optimum(workspace))


def judge_methods(work: Work, workspace: units.Workspace, judged_plants: JudgedPlants) -> Iterator[Contender]:
    """Make and judge one method after the other; one that fails is left out."""
    for name, method in work.study.methods.chosen.items():
        work.ahead = work.ahead[1:]
        contend = functools.partial(_contend, work, workspace, judged_plants, name, method)
        contender = work.attempt(name, contend)
        if contender is not None:
            yield contender


def compute(work: Work, folder: Path, show: Callable[[Results], None] = lambda _: None) -> Results:
    """All units of a study.

    Args:
        show: told what there is before bounds are computed.
    """
    study = work.study
    if study.response is not None:
        make_schedule(work.plants)  # what is wrong with it is told before anything is computed
    workspace, audited = run_audit(work, folder)
    judged_plants = judge_plants(work, workspace)
    contenders, methods = {}, {}
    for each in judge_methods(work, workspace, judged_plants):
        measured = work.attempt(each.name, functools.partial(_measure, work, workspace, each))
        if measured is not None:
            contenders[each.name], methods[each.name] = each, measured
    if work.left_out and all(METHODS[name].kind == "reference" for name in methods):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in work.left_out.items())
        raise NotConvergedError(f"no method is left: {reasons}")
    results = Results(audited.audit, judged_plants, methods, work.left_out, None, Theory())
    if not study.evaluation.bounds:
        return results
    work.ahead = ()
    lower, theory = _bounds(work, workspace, lambda: show(results))
    found = choose(methods).method
    worst = None if found is None else _worst(work, workspace, contenders[found])
    return replace(results, lower=lower, theory=theory, worst=worst)


def _worst(work: Work, workspace: units.Workspace, each: Contender) -> WorstGap:
    """The upper end of the bracket."""
    num_rollouts = each.method.num_rollouts(work.study.evaluation.rollouts)
    return work.do(
        WorstGap,
        f"bracket {each.name}",
        {**each.configuration, **_judged_by(work), "found": each.judged.found},
        lambda _: judging.worst_gap(
            workspace, each.policy_fn(), each.judged.found, num_rollouts=num_rollouts
        ),
    )


def _bounds(
    work: Work, workspace: units.Workspace, begin: Callable[[], None]
) -> tuple[LowerBound | None, Theory]:
    """The lower bound and the bounds of the theory; one that fails is left out with a warning.

    Args:
        begin: called before anything is computed.
    """

    def find(held: LowerBound | None) -> LowerBound:
        begin()
        found = bounds.lower_bound(workspace)
        return found if held is None or held.value <= found.value else held

    study, lower = work.study, None
    horizons = study.model_dump(include={"horizon", "ends"}) | {"horizons": study.evaluation.horizons}
    try:
        lower = work.do(LowerBound, "lower bound", horizons, find)
    except (CorruptFileError, StorageError):  # trouble of the run, not of the bound
        raise
    except Exception as error:  # whatever it is, all methods are judged by now
        reason = str(error) if isinstance(error, LqgapError) else f"{type(error).__name__}: {error}"
        work.warnings.append(f"there is no lower bound: {reason}")
    theory = work.do(Theory, "bounds", {"horizon": study.horizon}, lambda _: bounds.theory_bounds(workspace))
    if theory.missing is not None:
        work.warnings.append(f"there are no bounds: {theory.missing}")
    return lower, theory


def _judged_by(work: Work) -> dict[str, Any]:
    study = work.study
    return study.model_dump(
        include={"horizon": True, "ends": True, "real": True, "evaluation": {"rollouts", "map_points"}}
    )


def _contend(
    work: Work, workspace: units.Workspace, judged_plants: JudgedPlants, name: str, method: AbstractMethod
) -> Contender:
    study = work.study
    configuration = study.model_dump(include={"horizon", "ends", "probe"}) | {"options": method.model_dump()}
    key = work.unit(f"train {name}", configuration).key[:8]  # another study has other files
    checkpoints = workspace.folder / "checkpoints" / f"{name}-{key}"
    make_fn = functools.cache(functools.partial(workspace.make, name, method, checkpoints))

    def policy_fn() -> Any:
        return make_fn().policy

    trained = TrainedPolicy()
    if method.kind != "reference":
        keep_fn = functools.partial(units.keep, workspace, make_fn, f"{name}-{key}")
        trained = _train(work, workspace, name, configuration, keep_fn)
    if trained.file is not None:
        configuration["policy"] = trained.checksum
        policy_fn = functools.cache(functools.partial(load_policy, workspace.folder / trained.file))
    judged = work.do(
        Judged,
        f"gaps {name}",
        {**configuration, **_judged_by(work)},
        lambda _: judging.judge(
            workspace,
            name,
            policy_fn(),
            num_rollouts=method.num_rollouts(study.evaluation.rollouts),
            idle=judged_plants.idle,
            num_climbs=method.num_climbs,
        ),
    )
    return Contender(name, method, trained, policy_fn, configuration, judged)


def _train(
    work: Work,
    workspace: units.Workspace,
    name: str,
    configuration: dict[str, Any],
    keep_fn: Callable[[], TrainedPolicy],
) -> TrainedPolicy:
    """The policy of a method, trained or found; a file that is not the one that was made is made again."""

    def make(*, anew: bool) -> TrainedPolicy:
        return work.do(TrainedPolicy, f"train {name}", configuration, lambda _: keep_fn(), anew=anew)

    trained = make(anew=False)
    if trained.file is None:
        return trained
    path = workspace.folder / trained.file
    found = checksum(path)
    if found == trained.checksum:
        return trained
    trouble = "is missing" if found is None else "is not the policy that was made for this study"
    work.notice(f"{path} {trouble}: it is made again")
    return make(anew=True)


def _measure(work: Work, workspace: units.Workspace, each: Contender) -> Measured:
    """Runs of a method, how its gap grows, and what it learns."""
    name, evaluation, kind = each.name, work.study.evaluation, each.method.kind
    chosen = {**each.configuration, **_judged_by(work), "trajectories": evaluation.trajectories}
    found = work.do(
        Runs,
        f"runs {name}",
        chosen,
        lambda _: units.runs(
            workspace, name, each.policy_fn(), num_rollouts=each.method.num_rollouts(evaluation.rollouts)
        ),
    )
    grown, adapted, responded = Growth(), Adapted(), Responded()
    if kind != "reference" and work.study.response is not None:
        steps = {**each.configuration, **work.study.model_dump(include={"response", "real"})}
        responded = work.do(
            Responded,
            f"response {name}",
            steps,
            lambda _: respond_to_steps(workspace, name, each.policy_fn()),
        )
    if kind != "reference" and evaluation.horizons:
        horizons = {"horizons": evaluation.horizons, "rollouts": evaluation.rollouts}
        num_rollouts = each.method.num_rollouts(evaluation.rollouts)
        grown = work.do(
            Growth,
            f"horizons {name}",
            {**each.configuration, **horizons, "found": each.judged.found},
            lambda _: units.by_horizon(
                workspace, name, each.policy_fn(), each.judged.found, num_rollouts=num_rollouts
            ),
        )
    if kind == "adaptive" and evaluation.trajectories:
        adapted = work.do(
            Adapted, f"adapt {name}", chosen, lambda _: adapt(workspace, name, each.policy_fn())
        )
    told = (found.runs, grown.series, adapted.runs, responded.response, each.judged.unfit or responded.unfit)
    return Measured(each.trained, each.judged, *told)
