"""`lqgap evaluate`: the gap of a saved policy on the real plants of a study."""

from pathlib import Path

from lqgap.cli.session import open_workspace, print_rows


def run_evaluate(path: Path | None, policy: Path, *, seed: int | None, trust: bool, as_json: bool) -> None:
    """Print the gap of a policy on every real plant."""
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.evaluation import gap
    from lqgap.experiments.estimates import of_each
    from lqgap.experiments.plants import key_for
    from lqgap.experiments.units import NOISE
    from lqgap.policies import load_policy
    from lqgap.report.numbers import show_estimate

    real = workspace.plants.real
    estimate = gap(
        load_policy(policy),
        real.systems,
        horizon=workspace.study.horizon,
        key=key_for(workspace.study.seed, NOISE),
        num_rollouts=workspace.study.evaluation.rollouts,
        limits=workspace.plants.limits,
        ends=workspace.study.ends,
    )
    rows = []
    for name, each, value in zip(real.names, of_each(estimate), estimate.value.tolist(), strict=True):
        found = each.model_dump(exclude={"mean"}) if as_json else {}
        gap_shown = each.mean if as_json else show_estimate(each, in_words=True)
        rows.append({"plant": name, "gap": gap_shown, **found, "optimal_cost": value})
    print_rows(rows, f"Gap of {policy.name} on the real plants", as_json=as_json)
    if estimate.doubt and not as_json:
        print(f"No mean has an interval: {estimate.doubt}.")
