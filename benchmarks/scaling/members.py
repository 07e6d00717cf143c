"""Time against the number of members: a class, its audit, a bank of all of them and what judging it costs."""

from collections.abc import Callable
from typing import Any

import jax

import lqgap as lg
from benchmarks.scaling.curves import HEADER, Curve, curve, draw, show_seconds
from benchmarks.timing import table
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.simulators import Finite, check_assumptions

SIZES = (10, 100, 1_000, 10_000, 100_000)
SQUARED = SIZES[:3]
NUM_STEPS, NUM_ROLLOUTS, NUM_RUN = 50, 4, 512


def run() -> str:
    """A table and a picture."""
    curves = measure()
    path = draw("growth_members", curves, over="members N", cost="seconds")
    note = (
        "Masses on a spring (two states) drawn from their ranges, after compilation. Gaps are those of "
        f"{NUM_ROLLOUTS} rollouts of {NUM_STEPS} steps on every plant that is judged. A bank of all members "
        "that is judged on all of them filters every rollout by every member: N squared. "
        f"The picture is docs/{path}."
    )
    return table("Growth with the members", note, HEADER, [each.row(show_seconds) for each in curves])


def measure(sizes: tuple[int, ...] = SIZES, squared: tuple[int, ...] = SQUARED) -> list[Curve]:
    """All curves."""
    return [
        curve("`optima`", "1", sizes, lambda size: lambda: draw_members(size).optima().J),
        curve("`check_assumptions`", "1", sizes, _audit),
        curve("`unique`", "1", sizes, lambda size: lambda: draw_members(size).unique().parameters),
        curve("gap of one controller", "1", sizes, _gap_of_one),
        curve("bank of all, a step of `run`", "1", sizes, _step, per=NUM_RUN),
        curve("gap of that bank on one plant", "1", sizes, lambda size: gap_of_bank(size, 1)),
        curve("gap of that bank on all", "2", squared, lambda size: gap_of_bank(size, size)),
    ]


def draw_members(size: int) -> Finite:
    """A class of this size."""
    return lg.plants.mass_spring_damper().sample(size, key=jax.random.key(0))


def gap_of_bank(size: int, judged: int) -> Callable[[], Any]:
    """The evaluation of a bank of all members on the first of them."""
    members = draw_members(size)
    return gap_on(ModelBank(members.systems, filters="steady"), members.subset(range(judged)))


def gap_on(policy: Any, members: Finite) -> Callable[[], Any]:
    """A few short rollouts on every member."""
    how = dict(horizon=NUM_STEPS - 1, num_rollouts=NUM_ROLLOUTS, key=jax.random.key(1))
    return lambda: lg.gap(policy, members, **how).mean


def _audit(size: int) -> Callable[[], Any]:
    members = draw_members(size)
    return lambda: check_assumptions(members).measures.has_optimum


def _gap_of_one(size: int) -> Callable[[], Any]:
    members = draw_members(size)
    return gap_on(StationaryLQG(members[0]), members)


def _step(size: int) -> Callable[[], Any]:
    members = draw_members(size)
    bank = ModelBank(members.systems, filters="steady")
    return lambda: lg.adaptive.run(bank, members[0], horizon=NUM_RUN - 1, key=jax.random.key(2)).excess
