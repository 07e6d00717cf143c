"""Peak memory, of a fresh process for every point.

`python -m benchmarks.scaling.memory CASE SIZE` prints what one point takes.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import lqgap as lg
from benchmarks.scaling.curves import HEADER, Curve, draw, show_megabytes
from benchmarks.scaling.horizon import STEPS
from benchmarks.scaling.members import draw_members, gap_of_bank, gap_on
from benchmarks.timing import table
from lqgap.adaptive import LQGVTR
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.simulators import check_assumptions

Case = Callable[[int], Any]


def run() -> str:
    """A table and a picture."""
    curves = [
        Curve(name, expected, sizes, [peak(name, size) for size in sizes])
        for name, (expected, sizes, _) in GROWING.items()
    ]
    path = draw("growth_memory", curves, over="steps, rollouts or members", cost="MB", tell=_slope)
    note = (
        "By how much the peak of a fresh process exceeds what it had before the call. Compilation is part of "
        "it: some 50 to 100 MB whatever the size, so that what grows is told for each more step, rollout, "
        "member or pair of a model and a plant. Longer runs and more rollouts go in blocks, one kept. "
        f"Settings as in the sections on members and horizons. The picture is docs/{path}."
    )
    rows = [[each.name, each.expected, *each.row(show_megabytes)[-2:], _slope(each)] for each in curves]
    return table("Growth of memory", note, ["", "expected exponent", *HEADER[-2:], "for each more"], rows)


def _slope(each: Curve) -> str:
    """Bytes for each more, or for each more pair."""
    power = int(each.expected)
    if power == 0:
        return "one block"
    more = (each.costs[-1] - each.costs[0]) / (each.sizes[-1] ** power - each.sizes[0] ** power)
    return f"{1e6 * more:.0f} B"


@functools.cache
def peak(name: str, size: int) -> float:
    """The megabytes that a case takes in a process of its own."""
    return float(in_a_process("benchmarks.scaling.memory", name, str(size)))


def in_a_process(module: str, *arguments: str, **environment: str) -> str:
    """What a module prints, run in a process of its own."""
    root = Path(__file__).parents[2]
    place = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": place, **environment},
    )
    return done.stdout


def _rollout(size: int) -> Any:
    plant = lg.plants.mass_spring_damper().nominal()
    return lg.rollout(StationaryLQG(plant), plant, horizon=size, key=jax.random.key(0)).cost


def _run(size: int) -> Any:
    members = lg.plants.mass_spring_damper().grid(5)
    return lg.adaptive.run(LQGVTR(members), members[7], horizon=size, key=jax.random.key(0)).regret


def _gap(steps: int, rollouts: int) -> Any:
    members = lg.plants.mass_spring_damper().grid(5)
    how = dict(horizon=steps, num_rollouts=rollouts, key=jax.random.key(0))
    return lg.gap(ModelBank(members.systems), members[7], **how).mean


def _in_chunks(size: int) -> Any:
    members, rows = draw_members(size), np.arange(size).reshape(-1, 100)
    bank = ModelBank(members.systems, filters="steady")
    return [gap_on(bank, members.subset(some))() for some in rows]


def _solve_all(size: int) -> Any:
    return jax.jit(jax.vmap(lg.solve))(draw_members(size).systems).J


GROWING: dict[str, tuple[str, tuple[int, ...], Case]] = {
    "`rollout`, steps": ("1", (100_000, 1_000_000), _rollout),
    "`run` of LQG-VTR, steps": ("0", (1_000, 100_000), _run),
    "`gap` of a bank, steps": ("1", (100_000, 1_000_000), lambda size: _gap(size, 2)),
    "`gap` of a bank, rollouts": ("0", (100, 100_000), lambda size: _gap(STEPS, size)),
    "`optima`, members": ("1", (10_000, 100_000), lambda size: draw_members(size).optima().J),
    "`check_assumptions`, members": (
        "1", (10_000, 100_000), lambda size: check_assumptions(draw_members(size)).measures
    ),
    "gap of a bank on all, members": ("2", (300, 1_000), lambda size: gap_of_bank(size, size)()),
}  # fmt: skip

CASES = {name: case for name, (_, _, case) in GROWING.items()}
CASES |= {"the same in chunks": _in_chunks, "`solve`, all at once": _solve_all}


def _highest() -> float:
    """In MB. Not from `getrusage`: a process inherits the peak of the one that starts it."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    lg.enable_x64()
    draw_members(2).optima()  # loads what every case needs
    before = _highest()
    jax.block_until_ready(CASES[sys.argv[1]](int(sys.argv[2])))
    print(_highest() - before)
