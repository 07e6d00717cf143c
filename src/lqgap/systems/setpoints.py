"""Where a plant rests while the outputs that are followed are at a reference r:

    [ A - I   B ] [ x ]   [ 0 ]
    [  C_r    0 ] [ u ] = [ r ] ,      C_r the rows of C that are followed.

There is such a rest for every r where the matrix has full row rank: no more outputs are followed than there
are inputs, and the plant has no zero at one. Of several rests it is that with the smallest |Cx|^2 + |u|^2,
which does not depend on the coordinates of the state.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from lqgap.errors import InvalidArgumentError

SINGULAR = 1e-10  # of a matrix with rows and columns of unit size: what is smaller is zero
NUM_SCALINGS = 20


class Rest(eqx.Module):
    """State and input at rest, for a unit of each reference."""

    x: Float[Array | np.ndarray, "*member state followed"]
    u: Float[Array | np.ndarray, "*member input followed"]


def find_rest(A: Any, B: Any, C: Any, *, follow: Sequence[int]) -> Rest:
    """The rest of a plant, or of every plant of a batch; raises where a reference has none."""
    A, B, C = (np.asarray(matrix) for matrix in (A, B, C))
    rests = np.empty((*A.shape[:-2], A.shape[-1] + B.shape[-1], len(follow)))
    for index in np.ndindex(A.shape[:-2]):
        rest = _find_one(A[index], B[index], C[index], list(follow))
        if rest is None:
            where = f" of member {index[0]}" if index else ""
            raise InvalidArgumentError(
                f"follow is {list(follow)}: there are references at which the plant{where} cannot rest, "
                f"since it has {B.shape[-1]} inputs for {len(follow)} references, or a zero at one; follow "
                f"other outputs, or fewer"
            )
        rests[index] = rest
    return Rest(x=rests[..., : A.shape[-1], :], u=rests[..., A.shape[-1] :, :])


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


def _scale(matrix: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Factors of rows and columns that give all of them a largest entry of about one, and the result."""
    rows, columns, scaled = np.ones(matrix.shape[0]), np.ones(matrix.shape[1]), matrix
    for _ in range(NUM_SCALINGS):
        size = np.abs(scaled)
        rows = rows / np.sqrt(np.where(size.max(axis=1) > 0, size.max(axis=1), 1))
        columns = columns / np.sqrt(np.where(size.max(axis=0) > 0, size.max(axis=0), 1))
        scaled = rows[:, None] * matrix * columns
    return (rows, columns), scaled
