"""`lqgap certify`: the best possible worst gap, between a lower bound and a saved policy."""

from pathlib import Path

from lqgap.cli.session import open_workspace, print_rows


def run_certify(path: Path | None, policy: Path, *, seed: int | None, trust: bool, as_json: bool) -> None:
    """Print the bracket of the best possible worst gap over the class of the study."""
    workspace = open_workspace(path, seed=seed, trust=trust)

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
        ends=workspace.study.ends,
    )
    row = {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "factor": float(certificate.factor),
        "kind": certificate.bound.kind,
        "confidence": 1 - certificate.delta,
    }
    if certificate.doubt:
        row |= {"confidence": 0.0, "doubt": certificate.doubt}
    print_rows([row], f"The best possible worst gap, and that of {policy.name}", as_json=as_json)
