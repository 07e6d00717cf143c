"""Markov parameters of the predictor by regression on past data.

    y_t = M phi_t + e_t + C Abar^h xhat_{t-h|t-h-1} ,   phi_t = (y_{t-1}, .., y_{t-h}, u_{t-1}, .., u_{t-h})
    M = [C F, C Abar F, .., C Abar^{h-1} F, C B, C Abar B, .., C Abar^{h-1} B]
    estimate = (sum y phi') (ridge I + sum phi phi')^-1

All that is kept of a record are the moments sum z z' of z_t = (phi_t, y_t, u_t): they hold the regressions
of all lengths up to h, among which Akaike's criterion can choose, and the regressions of a state on the one
before, which a weighted realisation needs. A window with a lost observation (NaN) is left out.
"""

import bisect
import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float, Int

from lqgap.arguments import FloatLike, IntLike, MatrixLike, read_count, read_record
from lqgap.errors import InvalidArgumentError
from lqgap.linalg import symmetrize
from lqgap.systems import LQG, Optimum, predictor_markov_parameters

ROWS_AT_A_TIME = 16_384
MAX_LENGTH = 2_000
MAX_CHOSEN = 50
LEAST_EXCITATION = 1e-10  # smallest eigenvalue of the correlations of phi that counts as excited
UNEXCITED = (
    "the record does not excite all directions of past data of {length} lags, but of {excited} at most: "
    "inputs that are smooth or constant, repeat each other or are a function of past outputs do not suffice; "
    "take fewer lags, add independent random inputs, or give a positive ridge"
)


class MarkovParameters(eqx.Module):
    """How past data make a prediction, whatever the coordinates; the lag is the leading axis."""

    of_outputs: Float[Array, "lag output output"]  # C Abar^k F
    of_inputs: Float[Array, "lag output input"]  # C Abar^k B
    S: Float[Array, "output output"]  # covariance of what cannot be predicted

    @property
    def length(self) -> int:
        """How many lags there are."""
        return len(self.of_outputs)

    def matrix(self) -> Float[Array, "output feature"]:
        """M, which multiplies phi."""
        parts = (self.of_outputs, self.of_inputs)
        return jnp.concatenate([jnp.moveaxis(part, 0, 1).reshape(len(self.S), -1) for part in parts], axis=1)


class Moments(eqx.Module):
    """sum z z' over the windows of a record, and how many there were."""

    total: Float[Array, "z z"]
    count: Int[Array, ""]


class MarkovEstimate(eqx.Module):
    """Estimated Markov parameters, and the moments they come from."""

    parameters: MarkovParameters
    moments: Moments
    ridge: Float[Array, ""]

    @property
    def length(self) -> int:
        """How many lags there are."""
        return self.parameters.length

    def precision(self) -> Float[Array, "feature feature"]:
        """ridge I + sum phi phi': its inverse (x) S is the covariance of the estimated M."""
        p, m = self.parameters.of_inputs.shape[1:]
        features = self.length * (p + m)
        return self.moments.total[:features, :features] + self.ridge * jnp.eye(features)

    def residual_covariance(self, M: Float[Array, "output feature"]) -> Float[Array, "output output"]:
        """The mean of (y - M phi)(y - M phi)' over the record, for any M."""
        outputs, features = M.shape
        total = self.moments.total
        residual = jnp.eye(outputs, len(total), features).at[:, :features].set(-M)  # y - M phi in terms of z
        return symmetrize(residual @ total @ residual.T) / self.moments.count


def estimate_markov(
    y: MatrixLike, u: MatrixLike, *, length: IntLike | None = None, ridge: FloatLike = 0.0
) -> MarkovEstimate:
    """The Markov parameters of a record, rows (time, output) and (time, input).

    Args:
        y: lost observations are NaN; windows that hold one are left out.
        length: how many lags; if left out, twice as many as Akaike's criterion takes, or fewer if the record
            does not excite so many: a slow chirp that is sampled fast tells nothing by its older values.
        ridge: the weight of the prior, in units of squared data summed over time.
    """
    y, u = _read_record(y, u)
    ridge = _read_ridge(ridge)
    p, m = y.shape[1], u.shape[1]
    longest = (len(y) - 1 - p) // (p + m + 1)  # more lags: fewer windows than unknowns, S included
    is_chosen = length is None
    if is_chosen:
        length = max(1, min(longest // 2, MAX_CHOSEN))
    length = read_count("length", length, least=1, most=MAX_LENGTH)
    if length >= len(y) or (length > longest and (is_chosen or ridge == 0)):
        raise InvalidArgumentError(
            f"a record of {len(y)} steps is too short for {length} lags of {p} outputs and {m} inputs, which "
            f"are {length * (p + m)} unknowns for each output: record more steps, or take fewer lags"
        )
    moments = window_moments(np.asarray(y), np.asarray(u), length)
    excited = _count_excited(moments, (length, p, m), ridge)
    if excited < (1 if is_chosen else length):
        raise InvalidArgumentError(UNEXCITED.format(length=length, excited=excited))
    if is_chosen:
        length, moments = _choose_length(moments, (length, p, m), ridge, most=excited)
    return regress(moments, (length, p, m), jnp.asarray(ridge))


def exact_markov(optimum: Optimum, plant: LQG, *, length: IntLike) -> MarkovParameters:
    """The Markov parameters of a plant whose optimum is known."""
    of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=length)
    return MarkovParameters(of_outputs, of_inputs, optimum.S)


@partial(jax.jit, static_argnames="sizes")
def regress(moments: Moments, sizes: tuple[int, int, int], ridge: Float[Array, ""]) -> MarkovEstimate:
    """The regression that the moments of sizes (lags, outputs, inputs) hold.

    S is the sum of squared residuals over the number of windows less that of unknowns.
    """
    length, p, m = sizes
    features = length * (p + m)
    gram = moments.total[:features, :features] + ridge * jnp.eye(features)
    scale = jax.lax.rsqrt(jnp.diagonal(gram))  # makes the answer independent of units, up to rounding
    scaled = gram * scale[:, None] * scale[None, :]
    factor = jax.scipy.linalg.cho_factor(scaled, lower=True)
    cross = moments.total[:features, features : features + p]
    M = (scale[:, None] * jax.scipy.linalg.cho_solve(factor, scale[:, None] * cross)).T
    parts = M[:, : length * p].reshape(p, length, p), M[:, length * p :].reshape(p, length, m)
    of_outputs, of_inputs = (jnp.moveaxis(part, 1, 0) for part in parts)
    estimate = MarkovEstimate(MarkovParameters(of_outputs, of_inputs, jnp.eye(p)), moments, ridge)
    freedom = jnp.maximum(moments.count - features, 1)
    S = estimate.residual_covariance(M) * (moments.count / freedom)
    return eqx.tree_at(lambda tree: tree.parameters.S, estimate, S)


def window_moments(y: np.ndarray, u: np.ndarray, length: int) -> Moments:
    """The moments of all windows of a record; those with a lost sample are left out."""
    size = (length + 1) * (y.shape[1] + u.shape[1])
    total, count = np.zeros((size, size)), 0
    for start in range(length, len(y), ROWS_AT_A_TIME):
        stop = min(start + ROWS_AT_A_TIME, len(y))
        lagged = [signal[start - k : stop - k] for signal in (y, u) for k in range(1, length + 1)]
        z = np.concatenate([*lagged, y[start:stop], u[start:stop]], axis=1)
        z = z[np.all(np.isfinite(z), axis=1)]
        total, count = total + z.T @ z, count + len(z)
    return Moments(jnp.asarray(total), jnp.asarray(count))


def _read_record(y: MatrixLike, u: MatrixLike) -> tuple[Array, Array]:
    """A record whose numbers of outputs and inputs are read off its columns."""
    widths = [np.shape(value)[1] if np.ndim(value) == 2 else 1 for value in (y, u)]
    y, u = read_record(y, u, num_outputs=widths[0], num_inputs=widths[1])
    if 0 in widths:
        raise InvalidArgumentError(
            f"the record has {widths[0]} outputs and {widths[1]} inputs, expected at least one of each"
        )
    return y, u


def _read_ridge(ridge: Any) -> float:
    if isinstance(ridge, bool) or not isinstance(ridge, int | float) or not 0 <= ridge < math.inf:
        raise InvalidArgumentError(f"ridge is {ridge!r}, expected a number that is not negative")
    return float(ridge)


def _choose_length(
    moments: Moments, sizes: tuple[int, int, int], ridge: float, *, most: int
) -> tuple[int, Moments]:
    """Twice the number of lags that minimises  count log det S + 2 (number of unknowns), at most `most`.

    Twice, because what the criterion leaves out would look like additional states (D. Bauer, Estimating
    linear dynamical systems using subspace methods, Econometric Theory 21, 2005). With lags in order of age,
    one Cholesky factor holds the regressions of all lengths.
    """
    longest, p, m = sizes
    total, count = np.asarray(moments.total), int(moments.count)
    split, features = longest * p, longest * (p + m)
    by_age, now = _by_age(sizes)[: most * (p + m)], slice(features, features + p)
    factor = np.linalg.cholesky(total[np.ix_(by_age, by_age)] + ridge * np.eye(len(by_age)))
    explained = scipy.linalg.solve_triangular(factor, total[by_age, now], lower=True)
    per_lag = np.einsum("kfi,kfj->kij", *[explained.reshape(most, p + m, p)] * 2)
    residual = (total[now, now] - np.cumsum(per_lag, axis=0)) / count
    num_unknowns = p * (p + m) * np.arange(1, most + 1)
    best = int(np.argmin(count * np.linalg.slogdet(residual)[1] + 2 * num_unknowns)) + 1
    chosen = min(2 * best, most)
    kept = np.r_[: chosen * p, split : split + chosen * m, features : features + p + m]
    return chosen, Moments(moments.total[kept][:, kept], moments.count)


def _count_excited(moments: Moments, sizes: tuple[int, int, int], ridge: float) -> int:
    """How many lags have a regression with a unique answer; the more lags, the less are they excited."""
    length, p, m = sizes
    features = length * (p + m)
    if ridge == 0 and int(moments.count) < features + p:
        raise InvalidArgumentError(
            f"only {int(moments.count)} windows of {length} lags have no lost observation, expected at least "
            f"{features + p}: record more steps, or take fewer lags"
        )
    by_age = _by_age(sizes)
    gram = np.asarray(moments.total)[np.ix_(by_age, by_age)] + ridge * np.eye(features)
    scale = np.sqrt(np.where(np.diagonal(gram) > 0, np.diagonal(gram), 1.0))
    gram = gram / np.outer(scale, scale)

    def is_still(lags: int) -> bool:
        size = lags * (p + m)
        return bool(np.linalg.eigvalsh(gram[:size, :size])[0] < LEAST_EXCITATION)

    return bisect.bisect_left(range(1, length + 1), True, key=is_still) if is_still(length) else length


def _by_age(sizes: tuple[int, int, int]) -> np.ndarray:
    """The places of phi, those of the last step first."""
    length, p, m = sizes
    age = np.arange(length)
    return np.argsort(np.concatenate([np.repeat(age, p), np.repeat(age, m)]), kind="stable")
