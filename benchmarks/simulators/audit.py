"""The audit of ten thousand members, and the common norm by cutting planes against one large inequality.

The reference is the inequality over all members of a smaller class, since that over ten thousand takes long.
"""

import resource
import time

import jax
import numpy as np

from benchmarks.timing import seconds, table
from lqgap import LQG
from lqgap.simulators import Ball, check_assumptions
from lqgap.simulators.audit.contraction import _inequality, find_contraction
from lqgap.simulators.audit.measures import measure_members

NUM_MEMBERS = 10_000
NUM_IN_ONE = 1_000


def run() -> str:
    """Measure all stages and return the table."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A *= 0.9 / np.max(np.abs(np.linalg.eigvals(A)))
    ball = Ball(LQG(A, rng.normal(size=(4, 2)), rng.normal(size=(2, 4))), radius=0.01)
    members = ball.sample(NUM_MEMBERS, key=jax.random.key(0))
    check_assumptions(members)  # compiles
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    loops = measure_members(members).closed_loop
    start = time.perf_counter()
    _inequality(loops[:NUM_IN_ONE])(0.9)
    in_one = (time.perf_counter() - start) / NUM_IN_ONE
    by_planes = seconds(lambda: find_contraction(loops), rounds=3)
    rows = [
        [
            "build",
            f"{seconds(lambda: ball.sample(NUM_MEMBERS, key=jax.random.key(0)).parameters, rounds=3):.1f} s",
            "",
        ],
        ["solve", f"{seconds(members.optima, rounds=3):.1f} s", ""],
        [
            "audit, all of it",
            f"{seconds(lambda: check_assumptions(members).measures, rounds=3):.1f} s",
            "15 s",
        ],
        ["common norm by cutting planes (bisection)", f"{by_planes:.2f} s", ""],
        ["one inequality over all, one value of gamma", f"{in_one * NUM_MEMBERS:.0f} s (scaled up)", ""],
        ["ratio", f"{in_one * NUM_MEMBERS / by_planes:.0f}x", ""],
        ["largest memory of the process", f"{memory:.0f} MB", ""],
    ]
    note = f"{NUM_MEMBERS} members with four states, two inputs and two outputs, after compilation."
    return table("Audit of a large class", note, ["stage", "time", "wanted"], rows)
