"""`lqgap adapt`: LQG-VTR on a real plant of a study, and what it did."""

from collections.abc import Sequence
from pathlib import Path

from lqgap.cli.session import open_workspace, print_rows


def run_adapt(path: Path | None, *, seed: int | None, steps: int | None, trust: bool, as_json: bool) -> None:
    """Print the switches, the events and the regret of a run on the first real plant."""
    workspace = open_workspace(path, seed=seed, trust=trust)

    import numpy as np

    from lqgap.adaptive import LQGVTR, run
    from lqgap.batches import take
    from lqgap.experiments.plants import key_for

    study, real, names = workspace.study, workspace.plants.real, workspace.members.names
    horizon = study.horizon if steps is None else steps
    algorithm = LQGVTR(workspace.members, horizon=horizon)
    trace = run(algorithm, take(real.systems, 0), key=key_for(study.seed, "adapt"))
    switches = [
        {
            "step": switch.step,
            "acts on": _describe(names, switch.theta),
            "estimate": _describe(names, switch.estimate),
            "members left": switch.num_members,
            "regret": float(trace.regret[np.searchsorted(trace.steps, switch.step)]),
        }
        for switch in trace.switches
    ]
    events = [{"step": event.step, "event": event.name, "message": event.message} for event in trace.events]
    end = {"step": horizon, "regret": float(trace.regret[-1]), "members left": int(trace.num_members[-1])}
    if as_json:
        whole = {"plant": real.names[0], "switches": switches, "events": events, "end": end}
        print_rows([whole], "", as_json=True)
        return
    for title, part in (("Switches", switches), ("Events", events), ("At the end", [end])):
        if part:
            print_rows(part, f"{title} of LQG-VTR on {real.names[0]}", as_json=False)


def _describe(names: Sequence[str], theta: Sequence[float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, theta, strict=True))
