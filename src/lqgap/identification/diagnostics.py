"""Whether a model agrees with a record: its innovations must be white, and of the right size.

With r_t = S_t^-1/2 e_t, which a true model makes independent N(0, I), and past signals v_t, the score

    N tr[ (mean r v') (mean v v')^-1 (mean v r') ]   ~  chi square with (entries of r) (entries of v) degrees

tests that v does not predict r. With v = (r_{t-1}, .., r_{t-k}) it detects missing dynamics, with
v = (u_{t-1}, .., u_{t-k}) a wrong effect of the inputs; sum |r|^2 ~ chi square tests the noise.
A model fitted to the same record looks a little better than it is: test on another record where there is one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, MatrixLike, read_count, read_record
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.identification.realization import Realization
from lqgap.systems import LQG, filter_record


class Diagnosis(eqx.Module):
    """Probabilities that a true model's innovations are as odd as these, and how well it predicts."""

    whiteness: float  # small: past innovations predict the next, the model lacks dynamics
    input_blindness: float  # small: past inputs predict the innovations, their effect is wrong
    size: float  # small: innovations are larger or smaller than S says
    ratio: float  # mean square of innovations over what S says
    fit: Float[np.ndarray, " output"]  # 1 - rms(prediction error) / rms(y - its mean), for each output
    innovations: Float[np.ndarray, "time output"]  # r_t; NaN where an observation was lost

    def agrees(self, *, level: float = 0.01) -> bool:
        """Whether a true model would look like this or worse in at least a share `level` of records."""
        return min(self.whiteness, self.input_blindness, self.size) >= level / 3  # three tests share it


def diagnose(model: LQG | Realization, y: MatrixLike, u: MatrixLike, *, num_lags: IntLike = 10) -> Diagnosis:
    """Test a model on a record, rows (time, output) and (time, input)."""
    num_lags = read_count("num_lags", num_lags, least=1)
    p, m = len(model.C), model.B.shape[1]
    y, u = read_record(y, u, num_outputs=p, num_inputs=m)
    errors, whitened = (
        _filter_errors(model, y, u) if isinstance(model, LQG) else _prediction_errors(model, y, u)
    )
    past_r, past_u = (_lagged(signal, num_lags) for signal in (whitened, np.asarray(u)))
    now = whitened[num_lags:]
    seen = np.all(np.isfinite(np.concatenate([now, past_r], axis=1)), axis=1)
    if np.sum(seen) < num_lags * (p + m) + p:
        raise InvalidArgumentError(
            f"only {np.sum(seen)} windows of {num_lags} lags have no lost observation: the record is too "
            f"short for the tests; record more steps, or take fewer lags"
        )
    now, past_r, past_u = now[seen], past_r[seen], past_u[seen]
    total = float(np.sum(now**2))
    below = float(scipy.special.chdtr(now.size, total))
    known = np.where(np.isfinite(errors), np.asarray(y), np.nan)
    spread = np.sqrt(np.nanmean((known - np.nanmean(known, axis=0)) ** 2, axis=0))
    return Diagnosis(
        whiteness=_independence(now, past_r),
        input_blindness=_independence(now, past_u),
        size=2 * min(below, 1 - below),
        ratio=total / now.size,
        fit=1 - np.sqrt(np.nanmean(errors**2, axis=0)) / spread,
        innovations=whitened,
    )


def _filter_errors(plant: LQG, y: Array, u: Array) -> tuple[np.ndarray, np.ndarray]:
    """Prediction errors and whitened ones by the exact filter."""
    record = filter_record(plant, y, u)
    e, roots = np.asarray(record.innovation), np.linalg.cholesky(np.asarray(record.S))
    lost = np.isnan(np.asarray(y))
    whitened = np.linalg.solve(roots, e[:, :, None])[:, :, 0]
    return np.where(lost, np.nan, e), np.where(np.any(lost, axis=1)[:, None], np.nan, whitened)


def _prediction_errors(model: Realization, y: Array, u: Array) -> tuple[np.ndarray, np.ndarray]:
    """The same by the steady predictor from zero; a lost observation counts as predicted."""
    e = np.asarray(_predict(model, y, u))
    if np.any(np.isinf(e)) or np.nanmax(np.abs(e), initial=0) > 1e100:
        radius = float(np.max(np.abs(np.linalg.eigvals(np.asarray(model.Abar)))))
        raise NotConvergedError(
            f"the model's predictions diverge: A - FC has the spectral radius {radius:.6g}, expected below "
            f"1; realise with another order, or from a longer record"
        )
    root = np.linalg.cholesky(np.asarray(model.S))
    return e, np.linalg.solve(root, e.T).T


@jax.jit
def _predict(model: Realization, y: Array, u: Array) -> Array:
    def step(xhat: Array, sample: tuple[Array, Array]) -> tuple[Array, Array]:
        observed, applied = sample
        e = observed - model.C @ xhat
        return model.A @ xhat + model.B @ applied + model.F @ jnp.where(jnp.isnan(e), 0, e), e

    return jax.lax.scan(step, jnp.zeros_like(model.A[0]), (y, u))[1]


def _lagged(signal: np.ndarray, num_lags: int) -> np.ndarray:
    """(signal_{t-1}, .., signal_{t-k}) for t >= k."""
    return np.concatenate([signal[num_lags - k : len(signal) - k] for k in range(1, num_lags + 1)], axis=1)


def _independence(now: np.ndarray, past: np.ndarray) -> float:
    """The probability of a larger score if the past predicts nothing; constant directions do not count."""
    cross, gram = past.T @ now, past.T @ past
    scale = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    moving = values > 1e-10 * max(values[-1], 1e-300)
    if not np.any(moving):
        return 1.0
    projected = (vectors[:, moving] / np.sqrt(values[moving])).T @ (cross / scale[:, None])
    return float(scipy.special.chdtrc(np.sum(moving) * now.shape[1], np.sum(projected**2)))
