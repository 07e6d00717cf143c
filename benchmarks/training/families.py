"""Worst gaps on the built-in families: policies that need no training, and trained ones."""

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.policies import AbstractPolicy, ModelBank, RandomProbe, StationaryLQG
from lqgap.simulators import Finite

HORIZON = 200
FRESH = jax.random.key(99)
NUM_MEMBERS = {
    "phase_pair": 2,
    "overactuated": 2,
    "spare_actuator": 3,
    "boeing_747": 8,
    "dc_motor": 9,
    "thermal_zones": 8,
    "hanging_pendulum_cart": 8,
}
TRAINED = ("randomised bank", "robust bank")


def run() -> str:
    """One table, methods by families."""
    columns = {name: worst_gaps(members_of(name)) for name in NUM_MEMBERS}
    methods = list(next(iter(columns.values())))
    rows = [[method, *(_show(columns[name][method]) for name in NUM_MEMBERS)] for method in methods]
    rows.append(["best trained / best untrained", *(f"{_ratio(columns[name]):.2f}" for name in NUM_MEMBERS)])
    note = (
        "Largest gap over a few members of a family (a grid, or drawn if it has four parameters), "
        f"{HORIZON + 1} steps, common noise that training never saw (+- one standard error). `nominal` is "
        "the best of all members' own optimal controllers; `probe` plays unit noise for 5 steps and goes on "
        "with the bank."
    )
    return table("Methods and families", note, ["method", *NUM_MEMBERS], rows)


def members_of(name: str) -> Finite:
    """A grid where it has this many points, else as many members drawn."""
    family, count = getattr(lg.plants, name)(), NUM_MEMBERS[name]
    for points in (2, 3):
        if len(grid := family.grid(points)) == count:
            return grid
    return family.sample(count, key=jax.random.key(3))


def worst_gaps(members: Finite) -> dict[str, tuple[float, float]]:
    """The worst gap of every method on a class, with its standard error."""
    bank = ModelBank(members.systems, horizon=HORIZON)
    policies: dict[str, AbstractPolicy] = {
        "bank": bank,
        "likeliest member": ModelBank(members.systems, horizon=HORIZON, mode="map"),
        "Thompson": ModelBank(members.systems, horizon=HORIZON, mode="thompson"),
        "probe, then bank": RandomProbe(5, bank),
    }
    key = jax.random.key(0)
    policies["randomised bank"] = lg.train_randomized(bank, members, horizon=HORIZON, key=key).policy
    policies["robust bank"] = lg.train_robust(bank, members, horizon=HORIZON, key=key).policy
    nominal = min(
        max(float(lg.exact_gap(StationaryLQG(centre), plant, horizon=HORIZON)) for plant in members)
        for centre in members
    )
    gaps = {"nominal": (nominal, 0.0)}
    for name, policy in policies.items():
        estimate = lg.gap(policy, members, horizon=HORIZON, key=FRESH, num_rollouts=4096)
        gaps[name] = (estimate.worst, estimate.worst_stderr)
    return gaps


def _show(gap: tuple[float, float]) -> str:
    worst, stderr = gap
    if not np.isfinite(worst) or worst > 1e6:
        return "> 1e6"
    return f"{worst:.4g}" if stderr == 0 else f"{worst:.4g} +- {stderr:.1g}"


def _ratio(gaps: dict[str, tuple[float, float]]) -> float:
    trained = min(gaps[name][0] for name in TRAINED)
    return trained / min(worst for name, (worst, _) in gaps.items() if name not in TRAINED)
