"""Time against the number of steps, and of rollouts."""

from collections.abc import Callable
from typing import Any

import jax

import lqgap as lg
from benchmarks.scaling.curves import HEADER, Curve, curve, draw, show_seconds
from benchmarks.timing import table
from lqgap.adaptive import LQGVTR
from lqgap.policies import AbstractPolicy, ModelBank, StationaryLQG

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
FEWER = SIZES[:4]
ROLLOUTS = (16, 128, 1_024, 8_192, 65_536)
STEPS = 100


def run() -> str:
    """A table and a picture."""
    curves = measure()
    path = draw("growth_horizon", curves, over="steps H, or rollouts", cost="seconds")
    note = (
        "A mass on a spring, after compilation; banks and LQG-VTR have 25 models. Runs are those of "
        "`lqgap.adaptive.run`; gaps are those of 2 rollouts, and in the last row of many rollouts of "
        f"{STEPS} steps. The exact cost is had by doubling: it grows with the logarithm of H. "
        f"The picture is docs/{path}."
    )
    return table("Growth with the horizon", note, HEADER, [each.row(show_seconds) for each in curves])


def measure(sizes: tuple[int, ...] = SIZES, fewer: tuple[int, ...] = FEWER) -> list[Curve]:
    """All curves."""
    members = lg.plants.mass_spring_damper().grid(5)
    plant, bank = members[7], ModelBank(members.systems)
    best, key = StationaryLQG(plant), jax.random.key(0)

    def runs(policy: AbstractPolicy) -> Callable[[int], Callable[[], Any]]:
        return lambda size: lambda: lg.adaptive.run(policy, plant, horizon=size, key=key).regret

    return [
        curve("`rollout`", "1", sizes,
              lambda size: lambda: lg.rollout(best, plant, horizon=size, key=key).cost),
        curve("`run` of a bank", "1", sizes, runs(bank)),
        curve("`run` of LQG-VTR", "1", sizes, runs(LQGVTR(members))),
        curve("`gap` of a bank", "1", fewer,
              lambda size: lambda: lg.gap(bank, plant, horizon=size, num_rollouts=2, key=key).mean),
        curve("`exact_gap`", "1", fewer, lambda size: lambda: lg.exact_gap(best, plant, horizon=size)),
        curve("`exact_cost`", "0", sizes, lambda size: lambda: lg.exact_cost(best, plant, horizon=size)),
        curve("`gap`, rollouts", "1", ROLLOUTS,
              lambda size: lambda: lg.gap(bank, plant, horizon=STEPS, num_rollouts=size, key=key).mean),
    ]  # fmt: skip
