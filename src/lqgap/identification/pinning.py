"""The low-rank class with real data: the filter gain is read off a record, and all members share it.

Where as many outputs as states are observed (C invertible), the residuals of a long regression have the
covariance S = C Sigma C' + V whatever policy chose the inputs (that of y depends on it, E28), so that

    Sigma = C^-1 (S - V) C'^-1 ,    L = Sigma C' S^-1

are known without A and B. A member (A, B) has this Sigma, and hence this gain, if its process noise is

    W = Sigma - A (Sigma - L C Sigma) A' ,

which the Riccati equation says; where that is no covariance, no plant with this A has such residuals.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lqgap.arguments import IntLike, MatrixLike
from lqgap.errors import InvalidArgumentError
from lqgap.identification.markov import estimate_markov
from lqgap.simulators import Finite


def pin_gain(members: Finite, y: MatrixLike, u: MatrixLike, *, length: IntLike | None = None) -> Finite:
    """The members that can have the residuals of a record, with the process noise that gives all one gain.

    Args:
        members: of one C, invertible, and one V; their own W is not used.
        y, u: a record that excites the plant, rows (time, output) and (time, input); NaN is lost.
        length: how many lags the regression has; chosen from the record if left out.
    """
    A, C, V = (np.asarray(getattr(members.systems, name)) for name in "ACV")
    if C.shape[1] != C.shape[2] or np.linalg.matrix_rank(C[0]) < len(C[0]) or not np.all(np.equal(C, C[0])):
        raise InvalidArgumentError(f"members has C of shape {C.shape[1:]}, expected one invertible C for all")
    if not np.all(np.equal(V, V[0])):
        raise InvalidArgumentError(
            "members has different V, expected one for all: S - V must be one covariance"
        )
    S = np.asarray(estimate_markov(y, u, length=length).parameters.S)
    Sigma = np.linalg.solve(C[0], np.linalg.solve(C[0], S - V[0]).T)
    filtered = Sigma - Sigma @ C[0].T @ np.linalg.solve(S, C[0] @ Sigma)
    W = Sigma - A @ filtered @ A.mT
    W = 0.5 * (W + W.mT)
    is_possible = np.linalg.eigvalsh(W)[:, 0] >= 0
    if np.linalg.eigvalsh(Sigma)[0] <= 0 or not np.any(is_possible):
        raise InvalidArgumentError(
            "no member can have the residuals of this record: V is too large, the record too short, or the "
            "plant is none of the class"
        )
    kept = members.subset(is_possible)
    return eqx.tree_at(lambda tree: tree.systems.W, kept, jnp.asarray(W[is_possible]))
