"""A plant in state space from its Markov parameters.

The Hankel matrix  H[i, j] = C Abar^{i+j} [F, B] = O Ctr  has the rank n of the plant. Two ways to factor it:

    plain:      H ~ U s V' ,  O = U s^1/2 ,  Ctr = s^1/2 V' ; C, F and B are blocks of O and Ctr, and
                Abar = O^+ H_shifted Ctr^+ . Exact on exact parameters.
    canonical:  (I (x) S^-1/2) H G^1/2 ~ U s V' with G = sum phi phi': errors weigh as much as the data say.
                Then xhat_t = s^1/2 V' G^-1/2 phi_t, and C, A, B, F by least squares of y_t on xhat_t and of
                xhat_{t+1} on (xhat_t, u_t, e_t), all sums being moments of the regression. Beyond the last
                lag H is zero. This is the predictor-based method of A. Chiuso, The role of vector
                autoregressive modeling in predictor-based subspace identification (Automatica 43, 2007).

The order of an estimate minimises  count log det(residual covariance) + n (2p + m) log count .
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Bool, Float

from lqgap.arguments import IntLike, read_count
from lqgap.batches import in_turn
from lqgap.errors import InvalidArgumentError
from lqgap.identification.efficient import MarkovMetric
from lqgap.identification.markov import MarkovEstimate, MarkovParameters
from lqgap.identification.realization import Realization
from lqgap.policies.policy import require_one_of

RANK_TOLERANCE = 1e-10  # of a singular value, relative to the largest
PATIENCE = 3  # orders without improvement after which no larger one is tried


def realize(
    markov: MarkovParameters | MarkovEstimate,
    *,
    order: IntLike | None = None,
    weighting: Literal["plain", "canonical"] | None = None,
) -> Realization:
    """A plant with these Markov parameters.

    Args:
        markov: exact parameters, or what `estimate_markov` returns.
        order: how many states; if left out, the rank of exact parameters, or the choice of the Bayesian
            information criterion for an estimate.
        weighting: "canonical" (the default for an estimate) or "plain" (the only one for exact parameters).
    """
    parameters = _read_markov(markov, weighting)
    if isinstance(markov, MarkovEstimate) and weighting != "plain":
        states, values = _canonical_states(markov)
        build = partial(_canonical, markov, states)
    else:
        values = jnp.linalg.svd(_plain_hankel(parameters, shift=0), compute_uv=False)
        build = partial(balanced, parameters)
    rank = _rank(np.asarray(values))
    if order is None:
        return _best_order(markov, build, rank) if isinstance(markov, MarkovEstimate) else build(rank)
    order = read_count("order", order, least=1)
    if order > rank:
        raise InvalidArgumentError(
            f"order is {order}, but the Hankel matrix of {parameters.length} lags has rank {rank}: take a "
            f"smaller order, or more lags"
        )
    return build(order)


@partial(jax.jit, static_argnames="order")
def balanced(parameters: MarkovParameters, order: int) -> Realization:
    """The plain realisation, for `jit` and `vmap`: nothing is checked."""
    return _realize_by_shift(parameters, order)[0]


def weighted(
    estimate: MarkovEstimate, metric: MarkovMetric, order: int
) -> tuple[Realization, Float[Array, " order"], float]:
    """The plain realisation with weights, for `jit` and `vmap`; its singular values, and those of noise.

    With errors of M that have the covariance G^-1 (x) S, the weighted Hankel matrix has those of about unit
    variance, and noise alone a largest singular value of about the roots of its numbers of rows and columns.
    """
    p, m = estimate.parameters.of_inputs.shape[1:]
    rows = estimate.length // 2
    columns = estimate.length - rows
    past = np.r_[: columns * p, estimate.length * p : estimate.length * p + columns * m]
    right = jnp.linalg.cholesky(in_turn(metric, estimate.precision())[past][:, past])
    weights = (metric.S_root, metric.whitening, right)
    realization, values = _realize_by_shift(estimate.parameters, order, weights)
    return realization, values, math.sqrt(rows * p) + math.sqrt(columns * (p + m))


def keep_states(realization: Realization, is_kept: Bool[Array, " state"]) -> Realization:
    """The same number of states, of which those not kept are always zero and say nothing."""
    A, B, C, F = realization.A, realization.B, realization.C, realization.F
    Abar = jnp.where(is_kept[:, None] & is_kept[None, :], A - F @ C, 0)
    B, F = (jnp.where(is_kept[:, None], gain, 0) for gain in (B, F))
    C = jnp.where(is_kept[None, :], C, 0)
    return Realization(Abar + F @ C, B, C, F, realization.S)


def _read_markov(markov: Any, weighting: Any) -> MarkovParameters:
    if weighting is not None:
        require_one_of("weighting", weighting, ("canonical", "plain"))
    if isinstance(markov, MarkovEstimate):
        parameters = markov.parameters
    elif weighting == "canonical":
        raise InvalidArgumentError(
            "weighting is 'canonical', but exact parameters carry no moments of data to weigh with: pass an "
            "estimate, or leave the weighting out"
        )
    else:
        parameters = markov
    if parameters.length < 2:
        raise InvalidArgumentError(
            "there is one lag only, expected at least 2: A shows in how lags follow on each other"
        )
    if not np.all(np.isfinite(np.asarray(parameters.matrix()))):
        raise InvalidArgumentError("the Markov parameters have entries that are NaN or infinite")
    return parameters


def _rank(values: np.ndarray) -> int:
    if values[0] == 0:
        raise InvalidArgumentError(
            "all Markov parameters are zero: the past does not predict the next output"
        )
    return int(np.sum(values > RANK_TOLERANCE * values[0]))


def _hankel(parameters: MarkovParameters, rows: int, columns: int, *, shift: int) -> Array:
    """Blocks i+j+shift of the outputs, then of the inputs; zero beyond the last lag."""
    index = np.arange(rows)[:, None] + np.arange(columns)[None, :] + shift
    parts = []
    for blocks in (parameters.of_outputs, parameters.of_inputs):
        padded = jnp.concatenate([blocks, jnp.zeros_like(blocks[:1])])
        picked = padded[np.minimum(index, parameters.length)]
        parts.append(picked.transpose(0, 2, 1, 3).reshape(rows * blocks.shape[1], -1))
    return jnp.concatenate(parts, axis=1)


def _plain_hankel(parameters: MarkovParameters, *, shift: int) -> Array:
    rows = parameters.length // 2
    return _hankel(parameters, rows, parameters.length - rows, shift=shift)


def _realize_by_shift(
    parameters: MarkovParameters, order: int, weights: tuple[Array, Array, Array] | None = None
) -> tuple[Realization, Array]:
    """From (I (x) root^-1) H right = U s V'; and s. The weights are root, root^-1 and right, or none."""
    p, m = parameters.of_inputs.shape[1:]
    rows = parameters.length // 2
    columns = parameters.length - rows
    root, whitening, right = weights or (jnp.eye(p), jnp.eye(p), jnp.eye(columns * (p + m)))
    left = jnp.kron(jnp.eye(rows), whitening)
    now, shifted = (left @ _plain_hankel(parameters, shift=shift) @ right for shift in (0, 1))
    # LAPACK, asked for singular values of what is not finite, may never return.
    U, s, Vt = jnp.linalg.svd(jnp.where(jnp.isfinite(now), now, 0), full_matrices=False)
    U, s, Vt = U[:, :order], s[:order], Vt[:order]
    scale = jnp.sqrt(s)
    C = root @ U[:p] * scale[None, :]
    Ctr = scale[:, None] * jax.scipy.linalg.solve_triangular(right.T, Vt.T).T
    F, B = Ctr[:, :p], Ctr[:, columns * p : columns * p + m]
    Abar = (U / scale[None, :]).T @ shifted @ (Vt / scale[:, None]).T
    return Realization(Abar + F @ C, B, C, F, parameters.S), s


def _canonical_states(estimate: MarkovEstimate) -> tuple[np.ndarray, np.ndarray]:
    """s^1/2 V' G^-1/2, which makes states of phi, most telling first; and the singular values s."""
    parameters, length = estimate.parameters, estimate.length
    weight = np.kron(np.eye(length), np.linalg.inv(np.linalg.cholesky(np.asarray(parameters.S))))
    factor = np.linalg.cholesky(np.asarray(estimate.precision()))  # any root of G does
    hankel = np.asarray(_hankel(parameters, length, length, shift=0))
    _, s, Vt = np.linalg.svd(weight @ hankel @ factor, full_matrices=False)
    return np.sqrt(s)[:, None] * scipy.linalg.solve_triangular(factor.T, Vt.T).T, s


def _canonical(estimate: MarkovEstimate, states: np.ndarray, order: int) -> Realization:
    total = np.asarray(estimate.moments.total)
    p, m = estimate.parameters.of_inputs.shape[1:]
    split, features = estimate.length * p, states.shape[1]
    # Signals as combinations of z = (phi, y, u): the state, the next state, output, input, innovation.
    of_y, of_u = states[:order, :split], states[:order, split:]
    none_y, none_u = np.zeros((order, p)), np.zeros((order, m))
    now = np.concatenate([of_y, of_u, none_y, none_u], axis=1)
    later = np.concatenate([of_y[:, p:], none_y, of_u[:, m:], none_u, of_y[:, :p], of_u[:, :m]], axis=1)
    y, u = np.eye(p, len(total), features), np.eye(m, len(total), features + p)
    C = _least_squares(y, now, total)
    e = y - C @ now
    A, B, F = np.split(_least_squares(later, np.concatenate([now, u, e]), total), [order, order + m], axis=1)
    S = e @ total @ e.T / int(estimate.moments.count)
    return Realization(*(jnp.asarray(matrix) for matrix in (A, B, C, F, 0.5 * (S + S.T))))


def _least_squares(target: np.ndarray, regressors: np.ndarray, moments: np.ndarray) -> np.ndarray:
    gram = regressors @ moments @ regressors.T
    return scipy.linalg.solve(gram, regressors @ moments @ target.T, assume_a="pos").T


def _best_order(estimate: MarkovEstimate, build: Callable[[int], Realization], rank: int) -> Realization:
    p, m = estimate.parameters.of_inputs.shape[1:]
    count = int(estimate.moments.count)
    best, least = build(1), np.inf
    for order in range(1, rank + 1):
        candidate = build(order)
        _, log_det = np.linalg.slogdet(_residual_covariance(estimate, candidate))
        criterion = count * log_det + order * (2 * p + m) * np.log(count)
        if criterion < least:
            best, least = candidate, criterion
        elif order >= best.order + PATIENCE:
            break
    return best


def _residual_covariance(estimate: MarkovEstimate, candidate: Realization) -> np.ndarray:
    """Of the candidate's predictions from as many lags as the estimate has, without compiling anything."""
    A, B, C, F = (np.asarray(X) for X in (candidate.Abar, candidate.B, candidate.C, candidate.F))
    rows = [C]
    for _ in range(estimate.length - 1):
        rows.append(rows[-1] @ A)
    M = np.concatenate([row @ gain for gain in (F, B) for row in rows], axis=1)
    return np.asarray(estimate.residual_covariance(jnp.asarray(M)))
