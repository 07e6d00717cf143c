"""`lqgap train`, `evaluate`, `certify` and `adapt`: single stages of a study."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lqgap.cli.session import open_study, prepare_jax
from lqgap.errors import InvalidArgumentError


def run_train(path: Path | None, output: Path, *, method: str, seed: int | None, trust: bool) -> None:
    """Make the policy of one method and save it; checkpoints lie beside the file."""
    workspace = _bench(path, seed=seed, trust=trust)

    from lqgap.experiments.methods import make_policy
    from lqgap.policies import save_policy

    chosen = {
        name: part for name, part in workspace.study.methods.chosen.items() if name not in ("oracle", "vtr")
    }
    if method not in chosen:
        raise InvalidArgumentError(f"the study has no method {method!r}, only {', '.join(chosen)}")
    made = make_policy(
        method,
        chosen[method],
        family=workspace.family,
        members=workspace.members,
        horizon=workspace.study.horizon,
        seed=workspace.study.seed,
        checkpoints=output.with_name(f"{output.name}.checkpoints"),
    )
    save_policy(output, made.policy)


def run_evaluate(path: Path | None, policy: Path, *, seed: int | None, trust: bool, as_json: bool) -> None:
    """The gap of a policy on every real plant of the study."""
    workspace = _bench(path, seed=seed, trust=trust)

    from lqgap.evaluation import gap
    from lqgap.experiments.plants import key_for
    from lqgap.experiments.units import NOISE
    from lqgap.policies import load_policy

    estimate = gap(
        load_policy(policy),
        workspace.real.systems,
        horizon=workspace.study.horizon,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
    )
    parts = (workspace.real.names, estimate.mean.tolist(), estimate.stderr.tolist(), estimate.value.tolist())
    rows = [
        {"plant": name, "gap": mean, "stderr": stderr, "optimal_cost": value}
        for name, mean, stderr, value in zip(*parts, strict=True)
    ]
    _print(rows, f"Gap of {policy.name} on the real plants", as_json)


def run_certify(path: Path | None, policy: Path, *, seed: int | None, trust: bool, as_json: bool) -> None:
    """The bracket of the best possible worst gap over the class of the study."""
    workspace = _bench(path, seed=seed, trust=trust)

    from lqgap.experiments.plants import key_for
    from lqgap.experiments.units import NOISE
    from lqgap.policies import load_policy
    from lqgap.theory import certify

    certificate = certify(
        load_policy(policy),
        workspace.members,
        horizon=workspace.study.horizon,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
    )
    row = {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "factor": float(certificate.factor),
        "kind": certificate.bound.kind,
        "confidence": 1 - certificate.delta,
    }
    _print([row], f"The best possible worst gap, and that of {policy.name}", as_json)


def run_adapt(path: Path | None, *, seed: int | None, steps: int | None, trust: bool, as_json: bool) -> None:
    """LQG-VTR on the first real plant of the study: its switches, its events and its regret."""
    workspace = _bench(path, seed=seed, trust=trust)

    import numpy as np

    from lqgap.adaptive import LQGVTR, run
    from lqgap.batches import take
    from lqgap.experiments.plants import key_for

    horizon = workspace.study.horizon if steps is None else steps
    plant = take(workspace.real.systems, 0)
    trace = run(LQGVTR(workspace.members, horizon=horizon), plant, key=key_for(workspace.study.seed, "adapt"))
    rows = [
        {
            "step": switch.step,
            "acts on": _describe(workspace.members.names, switch.theta),
            "estimate": _describe(workspace.members.names, switch.estimate),
            "members left": switch.num_members,
            "regret": float(trace.regret[np.searchsorted(trace.steps, switch.step)]),
        }
        for switch in trace.switches
    ]
    events = [{"step": event.step, "event": event.name, "message": event.message} for event in trace.events]
    end = {"step": horizon, "regret": float(trace.regret[-1]), "members left": int(trace.num_members[-1])}
    if as_json:
        _print(
            [{"plant": workspace.real.names[0], "switches": rows, "events": events, "end": end}], "", as_json
        )
        return
    for title, part in (("Switches", rows), ("Events", events), ("At the end", [end])):
        if part:
            _print(part, f"{title} of LQG-VTR on {workspace.real.names[0]}", as_json)


def _describe(names: Sequence[str], theta: Sequence[float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, theta, strict=True))


def _bench(path: Path | None, *, seed: int | None, trust: bool) -> Any:
    """The plants of a study, with the class audited."""
    prepare_jax()
    study, source = open_study(path, seed=seed)

    from lqgap.experiments import units

    workspace = units.Workspace(study, source, Path(), trust=trust)
    workspace.kept = units.audit(workspace)["kept"]
    return workspace


def _print(rows: list[dict[str, Any]], title: str, as_json: bool) -> None:
    if as_json:
        from lqgap.files import finite_or_text

        print(json.dumps(finite_or_text(rows), indent=2))
        return
    table = Table(title=escape(title), title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(escape(v) if isinstance(v, str) else f"{v:.4g}" for v in row.values()))
    Console().print(table)
