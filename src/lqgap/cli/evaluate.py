"""`lqgap evaluate`: the gap of a saved policy on the real plants of a study."""

from pathlib import Path

from lqgap.cli.session import open_workspace, print_rows


def run_evaluate(path: Path | None, policy: Path, *, seed: int | None, trust: bool, as_json: bool) -> None:
    """Print the gap of a policy on every real plant."""
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.evaluation import gap
    from lqgap.experiments.plants import key_for
    from lqgap.experiments.units import NOISE
    from lqgap.policies import load_policy

    real = workspace.plants.real
    estimate = gap(
        load_policy(policy),
        real.systems,
        horizon=workspace.study.horizon,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
        ends=workspace.study.ends,
    )
    parts = (real.names, estimate.mean.tolist(), estimate.stderr.tolist(), estimate.value.tolist())
    rows = [
        {"plant": name, "gap": mean, "stderr": stderr, "optimal_cost": value}
        for name, mean, stderr, value in zip(*parts, strict=True)
    ]
    print_rows(rows, f"Gap of {policy.name} on the real plants", as_json=as_json)
