"""Where a plant rests while the outputs that are followed are at a reference r:

    [ A - I   B ] [ x ]   [ 0 ]
    [  C_r    0 ] [ u ] = [ r ] ,      C_r the rows of C that are followed.

There is such a rest for every r where the matrix has full row rank: no more outputs are followed than there
are inputs, and the plant has no zero at one. Of several rests it is that with the smallest |Cx|^2 + |u|^2,
which does not depend on the coordinates of the state.

An optimal loop goes to another rest fast, and beyond it (Butterworth's poles: by 4 to 8 %). So its target
leaves a share of the way for later at every step: the least with which outputs overshoot by at most 0.5 %.

    target_{t+1} = rest + pace (target_t - rest)
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import read_indices
from lqgap.errors import InvalidArgumentError

SINGULAR = 1e-10  # of a matrix with rows and columns of unit size: what is smaller is zero
NUM_SCALINGS = 20
OVERSHOOT, SETTLED = 5e-3, 1e-3  # of a step: how far beyond a loop may go, and how near it has arrived
MAX_STEPS, NUM_HALVINGS = 2**14, 12


class Rest(eqx.Module):
    """State and input at rest, for a unit of each reference, and how fast to go there."""

    x: Float[Array | np.ndarray, "*member state followed"]
    u: Float[Array | np.ndarray, "*member input followed"]
    pace: Float[Array | np.ndarray, "*member"]  # the share of the way that is left at every step


def find_rest(A: Any, B: Any, C: Any, K: Any, *, follow: Sequence[int]) -> Rest:
    """The rest of a plant, or of every plant of a batch, and its pace under K; raises if there is none."""
    A, B, C, K = (np.asarray(matrix) for matrix in (A, B, C, K))
    n, follow = A.shape[-1], list(read_indices("follow", follow, below=C.shape[-2]))
    rests, paces = np.empty((*A.shape[:-2], n + B.shape[-1], len(follow))), np.empty(A.shape[:-2])
    for index in np.ndindex(A.shape[:-2]):
        rest = _find_one(A[index], B[index], C[index], follow)
        if rest is None:
            where = f" of member {index[0]}" if index else ""
            raise InvalidArgumentError(
                f"follow is {follow}: there are references at which the plant{where} cannot rest, "
                f"since it has {B.shape[-1]} inputs for {len(follow)} references, or a zero at one; follow "
                f"other outputs, or fewer"
            )
        rests[index] = rest
        push = B[index] @ (rest[n:] + K[index] @ rest[:n])
        paces[index] = _find_pace(A[index] - B[index] @ K[index], push, C[index][follow], rest[:n])
    return Rest(x=rests[..., :n, :], u=rests[..., n:, :], pace=paces)


def has_full_rank(matrix: np.ndarray) -> bool:
    """Whether rows, or columns, are independent, whatever their units are."""
    return bool(np.linalg.svd(_scale(matrix)[1], compute_uv=False)[-1] > SINGULAR)


def _find_one(A: np.ndarray, B: np.ndarray, C: np.ndarray, follow: list[int]) -> np.ndarray | None:
    (n, m), p, followed = B.shape, len(C), len(follow)
    demands = np.block([[A - np.eye(n), B], [C[follow], np.zeros((followed, m))]])
    wanted = np.concatenate([np.zeros((n, followed)), np.eye(followed)])
    if followed > m or not has_full_rank(demands):
        return None
    (rows, columns), scaled = _scale(demands)
    _, _, directions = np.linalg.svd(scaled)
    rest = columns[:, None] * np.linalg.lstsq(scaled, rows[:, None] * wanted, rcond=None)[0]
    free = columns[:, None] * directions[n + followed :].T
    size = np.block([[C, np.zeros((p, m))], [np.zeros((m, n)), np.eye(m)]])
    return rest - free @ np.linalg.lstsq(size @ free, size @ rest, rcond=None)[0]


def _find_pace(loop: np.ndarray, push: np.ndarray, C: np.ndarray, x: np.ndarray) -> float:
    """The least pace with which no output that is followed overshoots, by halving of its time constant."""
    if _overshoot(loop, push, C, x, 0.0) <= OVERSHOOT:
        return 0.0
    low, high = 0.1, float(MAX_STEPS)  # time constants, in steps
    for _ in range(NUM_HALVINGS):
        middle = np.sqrt(low * high)
        is_slow = _overshoot(loop, push, C, x, np.exp(-1 / middle)) <= OVERSHOOT
        low, high = (low, middle) if is_slow else (middle, high)
    return float(np.exp(-1 / high))


def _overshoot(loop: np.ndarray, push: np.ndarray, C: np.ndarray, x: np.ndarray, pace: float) -> float:
    """How far an output goes beyond a unit of its reference, when its target goes there at a pace.

    Of every reference apart, with the target's distance d from the rest as a state:

        x_{t+1} - x_r = (A - BK) (x_t - x_r) + B (u_r + K x_r) d_t ,      d_{t+1} = pace d_t
    """
    n, count = x.shape
    power = np.block([[loop, push], [np.zeros((count, n)), pace * np.eye(count)]])
    errors = np.concatenate([-x, -pace * np.eye(count)])[None]
    while True:  # twice as many steps at a time, until all outputs are there
        errors, power = np.concatenate([errors, power @ errors]), power @ power
        outputs = np.einsum("jn,tnj->tj", C, errors[:, :n])
        late = np.max(np.abs(outputs[len(outputs) // 2 :]))
        if len(outputs) >= MAX_STEPS or late < SETTLED or not late < 1 / SETTLED:
            return float(np.max(outputs))


def _scale(matrix: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Factors of rows and columns that give all of them a largest entry of about one, and the result."""
    rows, columns, scaled = np.ones(matrix.shape[0]), np.ones(matrix.shape[1]), matrix
    for _ in range(NUM_SCALINGS):
        size = np.abs(scaled)
        rows = rows / np.sqrt(np.where(size.max(axis=1) > 0, size.max(axis=1), 1))
        columns = columns / np.sqrt(np.where(size.max(axis=0) > 0, size.max(axis=0), 1))
        scaled = rows[:, None] * matrix * columns
    return (rows, columns), scaled
