"""`lqgap certify`: the best possible worst gap, between a lower bound and a saved policy."""

from pathlib import Path
from typing import Any

from lqgap.cli.session import open_workspace, print_rows, printable

SEARCHED = "The upper end is that of the largest gap that a search found: no proof that no plant is worse."
OF_RANGES = "The lower end holds for the ranges as a whole, not for a finite class of their plants."


def run_certify(
    path: Path | None,
    policy: Path,
    *,
    rollouts: int | None = None,
    seed: int | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Print the bracket of the best possible worst gap over the ranges of the study, or over its class."""
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.evaluation.tails import FEWEST
    from lqgap.experiments.budgets import allotted
    from lqgap.experiments.plants import key_for
    from lqgap.experiments.units import NOISE
    from lqgap.policy_files import load_policy
    from lqgap.simulators import AbstractFamily
    from lqgap.theory import RangesBound, certify

    family = workspace.plants.family
    with allotted(workspace.plants, "lower bound and worst gap") as budget:
        certificate = certify(
            load_policy(policy),
            family if isinstance(family, AbstractFamily) else workspace.members,
            horizon=workspace.study.horizon,
            key=key_for(workspace.study.seed, NOISE),
            num_rollouts=rollouts or max(workspace.study.evaluation.rollouts, FEWEST),
            limits=workspace.plants.limits,
            ends=workspace.study.ends,
        )
    row: dict[str, Any] = {
        "over": certificate.over,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "factor": float(certificate.factor),
        "kind": certificate.bound.kind,
        "cut": budget.is_cut,
    } | ({"doubt": certificate.doubt} if certificate.doubt else {"confidence": certificate.confidence})
    told = {"worst": certificate.describe_worst(), "reasons": list(certificate.bound.reasons)}
    title = f"The best possible worst gap, and that of {policy.name}"
    print_rows([row | (told if as_json else {})], title, as_json=as_json)
    if as_json:
        return
    print(printable(f"Worst at {told['worst']}."))
    print(printable(f"The best possible may be well above the lower end: {'; '.join(told['reasons'])}."))
    if isinstance(certificate.bound, RangesBound):
        print(SEARCHED if certificate.bound.is_inherited else f"{SEARCHED} {OF_RANGES}")
