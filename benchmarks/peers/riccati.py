"""`solve_riccati` against SciPy, slycot and python-control, in a batch and one equation at a time.

Ours also returns gain, weight, residual and the closed loop's spectral radius, and raises where there is no
stabilising solution.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import scipy.linalg

from benchmarks.linalg.riccati import problems
from benchmarks.peers import peer
from lqgap.linalg import solve_riccati

AGREEMENT = 1e-7

Solve = Callable[..., np.ndarray]  # P from A, B, Q and R


def run(*, sizes: Sequence[int] = (2, 8, 32), count: int = 200, num_timed: int = 20) -> str:
    """One row for every size and peer."""
    rows = [row for size in sizes for row in _rows(size, count, num_timed)]
    return peer.section(
        "riccati",
        "Riccati equations",
        "Random equations (n/2 inputs, spectral radius of A between 0.5 and 1.1), time of one: peers in a "
        f"loop of {num_timed}; ours in the same loop, compiled (`jax.jit`) and as it is called, and {count} "
        "in one batch.",
        [
            "n",
            "peer",
            "its time",
            "ours, one at a time",
            "ratio",
            "ours, not compiled",
            "ratio",
            "ours, in a batch",
            "ratio",
            "difference",
        ],
        rows,
    )


def _rows(size: int, count: int, num_timed: int) -> list[list[str]]:
    A, B = problems(size, count)
    weights = dict(Q=np.eye(size), R=np.eye(size // 2))
    compiled = jax.jit(partial(solve_riccati, **weights))
    batched = jax.jit(jax.vmap(partial(solve_riccati, **weights)))

    def one_by_one(solve: Callable[..., Any]) -> float:
        return peer.seconds(lambda: [solve(a, b) for a, b in zip(A[:num_timed], B, strict=False)]) / num_timed

    batched(A, B)
    ours = [
        one_by_one(compiled),
        one_by_one(partial(solve_riccati, **weights)),
        peer.seconds(lambda: batched(A, B)) / count,
    ]
    reference = np.asarray(batched(A, B).P[:num_timed])
    rows = []
    for distribution, make in PEERS.items():
        cells = [str(size), peer.name(distribution)]
        if reason := peer.absence(distribution):
            rows.append([*cells, reason])
            continue
        solve = partial(make(), **weights)
        theirs = one_by_one(solve)
        found = np.array([solve(a, b) for a, b in zip(A[:num_timed], B, strict=False)])
        difference = np.max(
            np.linalg.norm(found - reference, axis=(1, 2)) / np.linalg.norm(reference, axis=(1, 2))
        )
        assert difference < AGREEMENT
        compared = [cell for time in ours for cell in (peer.duration(time), peer.ratio(theirs, time))]
        rows.append([*cells, peer.duration(theirs), *compared, f"{difference:.0e}"])
    return rows


def _scipy() -> Solve:
    return lambda A, B, Q, R: scipy.linalg.solve_discrete_are(A, B, q=Q, r=R)


def _slycot() -> Solve:
    import slycot

    return lambda A, B, Q, R: slycot.sb02od(len(A), len(R), A, B, Q, R, "D")[0]


def _control() -> Solve:
    import control

    return lambda A, B, Q, R: control.dare(A, B, Q, R)[0]


PEERS = {"scipy": _scipy, "slycot": _slycot, "control": _control}
