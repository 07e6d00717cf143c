"""Two thousand discrete Riccati equations: one batch in JAX against a loop over SciPy.

Our side includes what SciPy leaves out: gain, residual and the closed-loop spectral radius. SciPy runs
at its best setting for small matrices, one thread; a sample of its loop is timed and scaled up.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import threadpoolctl

from benchmarks.timing import seconds, table
from lqgap.linalg import solve_riccati

NUM_EQUATIONS = 2000
NUM_TIMED = 200
SIZES = (2, 4, 8, 16)
FLOORS = {2: 20, 4: 15, 8: 8, 16: 4}


def run() -> str:
    """Measure all sizes and return the table."""
    rows = [_measure(size) for size in SIZES]
    return table(
        "Discrete Riccati equations",
        f"{NUM_EQUATIONS} random equations (n/2 inputs, spectral radius of A between 0.5 and 1.1): "
        "`solve_riccati` under `jit` and `vmap` against a loop over `scipy.linalg.solve_discrete_are` "
        "at one thread.",
        ["n", "SciPy, one equation", "lqgap, one equation", "ratio", "wanted", "difference", "compilation"],
        rows,
    )


def problems(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B of random equations."""
    rng = np.random.default_rng(size)
    A = rng.normal(size=(count, size, size))
    radius = np.max(np.abs(np.linalg.eigvals(A)), axis=1)
    A *= (rng.uniform(0.5, 1.1, count) / radius)[:, None, None]
    return A, rng.normal(size=(count, size, size // 2))


def _measure(size: int) -> list[str]:
    A, B = problems(size, NUM_EQUATIONS)
    Q, R = np.eye(size), np.eye(size // 2)
    batch = jnp.asarray(A), jnp.asarray(B)
    start = time.perf_counter()
    solve = jax.jit(jax.vmap(lambda A, B: solve_riccati(A, B, Q=Q, R=R))).lower(*batch).compile()
    compilation = time.perf_counter() - start
    solution = solve(*batch)
    assert bool(jnp.all(solution.converged))

    def loop() -> list[np.ndarray]:
        return [scipy.linalg.solve_discrete_are(a, b, Q, R) for a, b in zip(A[:NUM_TIMED], B, strict=False)]

    with threadpoolctl.threadpool_limits(1):
        theirs = seconds(loop, rounds=3) / NUM_TIMED
        reference = loop()
    ours = seconds(lambda: solve(*batch)) / NUM_EQUATIONS
    difference = max(
        np.linalg.norm(p - r) / np.linalg.norm(r)
        for p, r in zip(np.asarray(solution.P), reference, strict=False)
    )
    assert difference < 1e-10
    return [
        str(size),
        f"{theirs * 1e6:.0f} us",
        f"{ours * 1e6:.1f} us",
        f"{theirs / ours:.0f}x",
        f"{FLOORS[size]}x",
        f"{difference:.1e}",
        f"{compilation:.1f} s",
    ]
