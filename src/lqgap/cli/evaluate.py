"""`lqgap evaluate`: the gap of a saved policy on the real plants of a study; margins of a linear one."""

from pathlib import Path

from lqgap.cli.session import open_workspace, print_rows


def run_evaluate(path: Path | None, policy: Path, *, seed: int | None, trust: bool, as_json: bool) -> None:
    """Print the gap of a policy on every real plant, and margins of one that is linear and goes on."""
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.evaluation import gap, margins
    from lqgap.evaluation.margins import has_margins
    from lqgap.experiments.estimates import of_each
    from lqgap.experiments.plants import key_for
    from lqgap.experiments.units import NOISE
    from lqgap.policy_files import load_policy
    from lqgap.report.numbers import show_estimate

    real, loaded = workspace.plants.real, load_policy(policy)
    estimate = gap(
        loaded,
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
    loops = margins(loaded, real.systems).weakest_loops() if has_margins(loaded) else {}
    each_loop = [{kind: float(values[i]) for kind, values in loops.items()} for i in range(len(rows))]
    if as_json:
        rows = [row | {"margins": found or None} for row, found in zip(rows, each_loop, strict=True)]
    print_rows(rows, f"Gap of {policy.name} on the real plants", as_json=as_json)
    if estimate.doubt and not as_json:
        print(f"No mean has an interval: {estimate.doubt}.")
    if loops and not as_json:
        signals, unit = workspace.plants.signals, "steps"
        if signals.dt is not None:
            unit = f"{signals.time_unit}, of which a step takes {signals.dt:g}"
            each_loop = [found | {"delay": found["delay"] * signals.dt} for found in each_loop]
        named = [
            {"plant": name} | {kind.replace("_", " "): value for kind, value in found.items()}
            for name, found in zip(real.names, each_loop, strict=True)
        ]
        print_rows(named, f"Margins: phase in degrees, delay in {unit}", as_json=False)
