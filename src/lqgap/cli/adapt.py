"""`lqgap adapt`: a method on a real plant of a study, and what it learned."""

from pathlib import Path
from typing import Any

from lqgap.cli.session import method_of, open_study, open_workspace, print_rows


def run_adapt(
    path: Path | None, *, method: str, seed: int | None, steps: int | None, trust: bool, as_json: bool
) -> None:
    """Print the switches, the events and the regret of a run on the first real plant."""
    chosen = method_of(open_study(path)[0], method)  # before any work
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.adaptive import run
    from lqgap.batches import take
    from lqgap.experiments.methods.base import Knowing
    from lqgap.experiments.plants import key_for

    study, real, members = workspace.study, workspace.plants.real, workspace.members
    horizon = study.horizon if steps is None else steps
    plant, made = take(real.systems, 0), workspace.make(method, chosen, None)
    policy = made.policy.on(plant) if isinstance(made.policy, Knowing) else made.policy
    policy = policy.for_horizon(horizon, systems=members.systems)
    trace = run(policy, plant, horizon=horizon, key=key_for(study.seed, "adapt"))

    def row(step: int, index: int, **more: str) -> dict[str, Any]:
        left = {} if trace.num_members is None else {"members left": int(trace.num_members[index])}
        figures = {name: float(values[index]) for name, values in trace.figures.items()}
        return {"step": step, **more, **left, "regret": float(trace.regret[index]), **figures}

    at = [int(index) for index in trace.steps.searchsorted([switch.step for switch in trace.switches])]
    switches = [
        row(switch.step, index, **{"acts on": members.describe_values(switch.theta)})
        for switch, index in zip(trace.switches, at, strict=True)
    ]
    events = [{"step": event.step, "event": event.name, "message": event.message} for event in trace.events]
    end = row(horizon, -1)
    if as_json:
        whole = {"plant": real.names[0], "method": method, "switches": switches, "events": events, "end": end}
        print_rows([whole], "", as_json=True)
        return
    for title, part in (("Switches", switches), ("Events", events), ("At the end", [end])):
        if part:
            print_rows(part, f"{title} of {chosen.label} on {real.names[0]}", as_json=False)
