"""The units of work of a study: each a function from the study to plain values for the record.

A `Workspace` holds what several units need and makes it when it is first asked for, so that a run that was
stopped does not make again what its store has. All chance follows from the seed: a unit gives the same
result whenever it is computed.
"""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lqgap.batches import join, take
from lqgap.errors import InvalidArgumentError, LqgapError, NotConvergedError
from lqgap.evaluation import gap, gap_by_horizon, rollout
from lqgap.evaluation.gap import references_of
from lqgap.evaluation.horizons import shorten
from lqgap.experiments.family import Family, make_family
from lqgap.experiments.methods import make_policy, plan_for
from lqgap.experiments.parsing import Source
from lqgap.experiments.plants import BoxMap, RealPlants, key_for, make_map, make_members, make_real, pad_to
from lqgap.experiments.study import Study
from lqgap.policies import AbstractPolicy, FiniteHorizonLQG, load_policy, save_policy
from lqgap.simulators import Finite, check_assumptions
from lqgap.systems import LQG
from lqgap.theory import bounds, minimax_lower_bound
from lqgap.theory.lower_bounds.belief import belief_bound, is_small

NOISE = "evaluation noise"  # all methods meet the same
BOUND_TOLERANCE = 1e-4  # relative, of the search over priors, each of which gives a bound
MAX_CORNERS = 4  # members that the lower bound is computed for


class Workspace:
    """A study at work.

    Args:
        kept: the members that the audit left; None before it.
    """

    def __init__(self, study: Study, source: Source, folder: Path, *, trust: bool):
        self.study, self.source, self.folder, self.trust = study, source, folder, trust
        self.kept: list[int] | None = None

    @functools.cached_property
    def family(self) -> Family:
        """The family of simulators."""
        return make_family(self.study, self.source, trust=self.trust)

    @functools.cached_property
    def all_members(self) -> Finite:
        """The class as the study asks for it."""
        return make_members(self.study, self.family, self.source)

    @functools.cached_property
    def members(self) -> Finite:
        """The class without the members that the audit removed."""
        if self.kept is None:
            raise InvalidArgumentError("the class was not audited yet")
        return self.all_members.subset(self.kept)

    @functools.cached_property
    def real(self) -> RealPlants:
        """The real plants."""
        return make_real(self.study, self.family, self.source)

    @functools.cached_property
    def box(self) -> BoxMap | None:
        """The map over the box, if there is one."""
        return make_map(self.study, self.family)

    @functools.cached_property
    def judged(self) -> LQG:
        """All plants that methods meet: the class, the map and the real ones, one after the other."""
        groups = [self.members.systems, self.real.systems]
        if self.box is not None:
            groups.insert(1, self.box.members.systems)
        most = max(group.num_states for group in groups)
        return join([pad_to(group, most) for group in groups])

    def split(self, values: np.ndarray) -> dict[str, list[float]]:
        """Values of all judged plants by where the plants come from."""
        class_size, num_real = len(self.members), len(self.real.names)
        return {
            "grid": values[:class_size].tolist(),
            "map": values[class_size : len(values) - num_real].tolist(),
            "real": values[len(values) - num_real :].tolist(),
        }

    def policy_path(self, name: str, key: str) -> Path:
        """Where the policy of a method lies; another study has another key."""
        return Path("policies") / f"{name}-{key[:8]}.safetensors"


def audit(workspace: Workspace) -> dict[str, Any]:
    """Which assumptions hold, and which members are left: those that have an optimum."""
    members = workspace.all_members
    report = check_assumptions(members)
    has_optimum = np.asarray(report.measures.has_optimum)
    kept = np.flatnonzero(has_optimum).tolist()
    if not kept:
        raise NotConvergedError(f"no member of the class has an optimum: {report.checks[0].remedy}")
    actions = []
    if removed := len(members) - len(kept):
        first = members.describe(int(np.argmin(has_optimum)))
        actions.append(f"removed {removed} of {len(members)} members, which have no optimum, such as {first}")
    unstable = int(np.sum(np.asarray(report.measures.spectral_radius)[kept] >= 1))
    if unstable:
        actions.append(f"kept {unstable} members that are not stable by themselves: no bound of theory holds")
    contraction = report.contraction
    if contraction is not None and contraction.holds and not report.holds_as_printed:
        actions.append(
            f"bounds use a common weighted norm of condition {contraction.condition:.3g}, in which all "
            f"closed loops contract by {contraction.gamma:.4g}"
        )
    conditions = [
        {
            "assumption": check.assumption,
            "statement": check.statement,
            "as_printed": bool(check.as_printed),
            "repaired": bool(check.repaired),
            "value": float(check.value),
            "margin": float(check.margin),
            "set_by": members.describe(check.member),
            "remedy": check.remedy,
        }
        for check in report.checks
    ]
    return {
        "kept": kept,
        "audit": {
            "num_members": len(members),
            "num_kept": len(kept),
            "actions": actions,
            "conditions": conditions,
            "constants": {name: float(value) for name, value in report.constants.items()},
        },
    }


def optimum(workspace: Workspace) -> dict[str, Any]:
    """What a controller that knows its plant costs, for every plant that methods meet."""
    value = np.asarray(references_of(workspace.judged, horizon=workspace.study.horizon).value)
    return {"value": workspace.split(value)}


def train(workspace: Workspace, name: str, *, key: str) -> dict[str, Any]:
    """Make the policy of a method, and save it; a class may have none of some kind."""
    study, path = workspace.study, workspace.policy_path(name, key)
    try:
        made = make_policy(
            name,
            study.methods.chosen[name],
            family=workspace.family,
            members=workspace.members,
            horizon=study.horizon,
            seed=study.seed,
            checkpoints=workspace.folder / "checkpoints" / f"{name}-{key[:8]}",
        )
    except NotConvergedError as error:
        return {"missing": str(error)}
    save_policy(workspace.folder / path, made.policy)
    looks = [
        {"stage": int(look["stage"]), "step": int(look["step"])}
        | {part: float(look[part]) for part in ("worst", "mean", "best")}
        for look in made.history
    ]
    return {"file": path.as_posix(), "history": looks}


def judge(workspace: Workspace, policy: AbstractPolicy | None) -> dict[str, Any]:
    """The gap of a policy on every plant; None knows the plant and has none."""
    count = len(workspace.judged.A)
    if policy is None:
        return {"mean": workspace.split(np.zeros(count)), "stderr": workspace.split(np.zeros(count))}
    estimate = gap(
        policy,
        workspace.judged,
        horizon=workspace.study.horizon,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
    )
    return {"mean": workspace.split(estimate.mean), "stderr": workspace.split(estimate.stderr)}


def by_horizon(workspace: Workspace, policy: AbstractPolicy) -> dict[str, Any]:
    """The largest gap over the class at every horizon."""
    horizons = workspace.study.evaluation.horizons
    estimates = gap_by_horizon(
        plan_for(policy, workspace.members, horizon=max(horizons)),
        workspace.members,
        horizons=horizons,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
    )
    return {"worst": [{"mean": e.worst, "stderr": e.worst_stderr} for e in estimates]}


def runs(workspace: Workspace, policy: AbstractPolicy | None) -> list[dict[str, Any]]:
    """One run on each of the first real plants; the noise of a plant is the same for all methods."""
    found = []
    for index in range(min(workspace.study.evaluation.trajectories, len(workspace.real.names))):
        plant = take(workspace.real.systems, index)
        acting = FiniteHorizonLQG(plant, workspace.study.horizon) if policy is None else policy
        key = jax.random.fold_in(key_for(workspace.study.seed, "runs"), index)
        run = rollout(acting, plant, horizon=workspace.study.horizon, key=key)
        parts = {name: np.asarray(getattr(run, name)).tolist() for name in ("cost", "u", "y")}
        found.append({"plant": workspace.real.names[index], **parts})
    return found


def lower_bound(workspace: Workspace) -> dict[str, Any]:
    """What no policy can beat on some corners of the class, and so on all of it; at other horizons, too."""
    corners = workspace.members.subset(_corners(workspace.members))
    # The sharpest kind if its sums are small enough, or else the one that always is.
    pair = take(references_of(corners.systems, horizon=workspace.study.horizon), [0, -1])
    kinds = ("bayes",) if is_small(pair, num_steps=2) else ("two-point",)
    bound = minimax_lower_bound(corners, horizon=workspace.study.horizon, kinds=kinds)
    set_by = list(bound.pair)
    horizons = workspace.study.evaluation.horizons
    later: list[float] = []
    if horizons and bound.kind == "bayes" and bound.num_steps == 2:  # cheap at any horizon
        references = references_of(corners.subset(set_by).systems, horizon=max(horizons))
        shorter = (shorten(references, sooner=max(horizons) - horizon) for horizon in horizons)
        later = [
            belief_bound(reference, num_steps=2, tolerance=BOUND_TOLERANCE).value for reference in shorter
        ]
    return {
        "value": bound.value,
        "kind": bound.kind,
        "set_by": [corners.describe(index) for index in dict.fromkeys(set_by)],
        "by_horizon": later,
    }


def theory_bounds(workspace: Workspace) -> dict[str, Any]:
    """The sheet of bounds; where theory does not apply, why."""
    horizon = workspace.study.horizon
    try:
        sheet = bounds(workspace.members, horizon=horizon)
    except LqgapError as error:
        return {"missing": str(error)}
    columns = {bound.name: bound for bound in sheet.bounds}
    names = list(dict.fromkeys(itertools.chain.from_iterable(bound.terms for bound in sheet.bounds)))
    readers: dict[str, Callable[[Any], float | None]] = {
        name: lambda bound, name=name: bound.terms.get(name) for name in names
    }
    for name in ("regret", "gap", "nothing", "useful_from"):
        readers[name] = lambda bound, name=name: getattr(bound, name)
    rows = [
        {
            "name": name,
            "printed": read(columns["printed"]),
            "corrected": read(columns["corrected"]),
            "actual": read(columns["actual norms"]),
        }
        for name, read in readers.items()
    ]
    vacuous = dict(zip(("printed", "corrected", "actual"), (b.vacuous for b in sheet.bounds), strict=True))
    return {
        "sheet": {
            "title": sheet.title,
            "horizon": horizon,
            "rows": rows,
            "vacuous": {name: bool(value) for name, value in vacuous.items()},
        }
    }


def open_policy(workspace: Workspace, made: dict[str, Any]) -> AbstractPolicy:
    """The policy that a unit of training saved."""
    return load_policy(workspace.folder / made["file"])


def _corners(members: Finite) -> list[int]:
    """Members whose parameters are all extreme, a few of them; members evenly spaced if there are none."""
    parameters = np.asarray(members.parameters)
    extreme = np.all((parameters == parameters.min(axis=0)) | (parameters == parameters.max(axis=0)), axis=1)
    rows = np.flatnonzero(extreme)
    rows = rows if len(rows) > 1 else np.arange(len(members))
    return np.unique(
        rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_CORNERS)).round().astype(int)]
    ).tolist()
