"""The member of a family that makes a record most likely, and how well the record determines it.

With the innovations e_t ~ N(0, S_t) of the exact filter, and d the derivative by a parameter,

    log p(y | u)   = -1/2 sum_t [ e' S^-1 e + log det 2 pi S ]
    d log p(y | u) = sum_t [ -de' S^-1 e - 1/2 tr(S^-1 dS) + 1/2 e' S^-1 dS S^-1 e ]
    information    = sum_t [ de' S^-1 de + 1/2 tr(S^-1 dS S^-1 dS) ] ,       covariance = information^-1 .

The search follows the gradient from the most likely of a few hundred spread members, whose discrete
parameters are held. Parameters at an end of their interval have no standard error.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Bool, Float

from lqgap.arguments import IntLike, MatrixLike, read_count, read_record
from lqgap.errors import NotConvergedError
from lqgap.simulators import AbstractFamily
from lqgap.simulators.building import Branch, branch_of, build_members
from lqgap.simulators.family import spread_parameters
from lqgap.simulators.likelihood import batch_likelihoods
from lqgap.systems import LQG, filter_record

END = 1e-6  # of an interval's width: nearer to an end, a parameter is at it
NUM_RANKED = 1000  # steps of the record that say where to start
DIFFERENCE = 1e-5  # of an interval's width: the step of differences where `build` cannot be differentiated
LEAST_INFORMATION = 1e-12  # smallest eigenvalue of the scaled information that determines all parameters


class Fit(eqx.Module):
    """The most likely member found."""

    names: tuple[str, ...] = eqx.field(static=True)
    theta: Float[np.ndarray, " parameter"]
    plant: LQG
    log_likelihood: float
    covariance: Float[
        np.ndarray, "parameter parameter"
    ]  # NaN for held parameters, infinite if not identified
    is_free: Bool[np.ndarray, " parameter"]  # continuous, and not at an end of its interval
    spread: float  # of the log-likelihoods reached from the starts: large if there are several optima

    @property
    def standard_errors(self) -> Float[np.ndarray, " parameter"]:
        """Of every parameter; NaN where it is discrete, or at an end of its interval."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def values(self) -> dict[str, float]:
        """The parameters by name."""
        return dict(zip(self.names, map(float, self.theta), strict=True))


def fit_parameters(family: AbstractFamily, y: MatrixLike, u: MatrixLike, *, num_starts: IntLike = 4) -> Fit:
    """Maximum likelihood over a family, for a record with rows (time, output) and (time, input).

    Args:
        y: lost observations are NaN.
        num_starts: descents, from the most likely of a few hundred members.
    """
    num_starts = read_count("num_starts", num_starts, least=1)
    starts = spread_parameters(family)
    systems = build_members(family.branches, starts)
    y, u = read_record(y, u, num_outputs=systems.num_outputs, num_inputs=systems.num_inputs)
    early = y[:NUM_RANKED], u[:NUM_RANKED]
    likelihoods = np.concatenate([chunk[:, -1] for chunk in batch_likelihoods(systems, *early)])
    likely = [i for i in np.argsort(-likelihoods)[:num_starts] if np.isfinite(likelihoods[i])]
    if not likely:
        raise NotConvergedError("no member that was tried has a finite likelihood: check the units of y")
    reached = [_descend(family, starts[index], y, u) for index in likely]
    theta, best = max(reached, key=lambda found: found[1].log_likelihood)
    is_free = _free(family, theta)
    covariance = np.full((len(theta), len(theta)), np.nan)
    covariance[np.ix_(is_free, is_free)] = _inverse(np.asarray(best.information)[np.ix_(is_free, is_free)])
    return Fit(
        names=family.names,
        theta=theta,
        plant=family.system(theta),
        log_likelihood=float(best.log_likelihood),
        covariance=covariance,
        is_free=is_free,
        spread=float(best.log_likelihood - min(found.log_likelihood for _, found in reached)),
    )


class _Evidence(eqx.Module):
    """What a record says of a member; the derivatives are by all parameters, zero by discrete ones."""

    log_likelihood: Float[Array, ""]
    slope: Float[Array, " parameter"]
    information: Float[Array, "parameter parameter"]


def _descend(family: AbstractFamily, theta: np.ndarray, y: Array, u: Array) -> tuple[np.ndarray, _Evidence]:
    """The best parameters from one start, discrete ones held; in units of the intervals' widths."""
    branch = branch_of(theta, family.branches)
    columns = np.array(branch.columns, dtype=int)
    low, high = branch.ends
    width = np.where(high > low, high - low, 1.0)

    def at(values: np.ndarray) -> np.ndarray:
        row = theta.copy()
        row[columns] = np.clip(low + values * width, low, high)
        return row

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        row = at(values)
        if not family.is_inside(row[None, :])[0]:
            return np.inf, np.zeros_like(values)
        evidence = _evidence(branch, row, y, u)
        return -float(evidence.log_likelihood) / len(y), -np.asarray(evidence.slope)[columns] * width / len(y)

    best = theta
    if len(columns):
        found = scipy.optimize.minimize(
            loss,
            (theta[columns] - low) / width,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, float(top > bottom)) for bottom, top in zip(low, high, strict=True)],
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200},
        )
        best = at(found.x)
    return best, _evidence(branch, best, y, u)


def _evidence(branch: Branch, theta: np.ndarray, y: Array, u: Array) -> _Evidence:
    columns, total = np.array(branch.columns, dtype=int), len(theta)
    if branch.is_traceable:
        return _evidence_by_derivative(branch, jnp.asarray(theta[columns]), y, u, total)
    low, high = branch.ends
    steps = np.maximum(DIFFERENCE * (high - low), 1e-12)
    shifts = np.zeros((len(columns), total))
    shifts[np.arange(len(columns)), columns] = steps
    rows = np.concatenate([theta[None, :], theta + shifts, theta - shifts])
    e, S = _signals(build_members([branch], rows), y, u)
    count = len(columns)

    def central(signal: Array) -> Array:
        difference = signal[1 : count + 1] - signal[count + 1 :]
        return jnp.moveaxis(difference, 0, -1) / (2 * jnp.asarray(steps)).reshape(
            (1,) * (signal.ndim - 1) + (-1,)
        )

    return _summarize((e[0], S[0]), (central(e), central(S)), y, columns, total)


@eqx.filter_jit
def _evidence_by_derivative(branch: Branch, values: Array, y: Array, u: Array, total: int) -> _Evidence:
    def signals(values: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        record = filter_record(branch.plant(values), y, u)
        return (record.innovation, record.S), (record.innovation, record.S)

    slopes, now = jax.jacfwd(signals, has_aux=True)(values)
    return _summarize(now, slopes, y, np.array(branch.columns, dtype=int), total)


def _summarize(
    signals: tuple[Array, Array], slopes: tuple[Array, Array], y: Array, columns: np.ndarray, total: int
) -> _Evidence:
    """The sums of the module's formulas; a lost component has e = 0 and S = 1 and adds nothing to them."""
    (e, S), (de, dS) = signals, slopes
    precision = jnp.linalg.inv(S)
    weighted = jnp.einsum("tij,tj->ti", precision, e)
    moved = jnp.einsum("tij,tjka->tika", precision, dS)
    log_det = jnp.sum(jnp.linalg.slogdet(S)[1])
    value = -0.5 * (jnp.sum(e * weighted) + log_det + jnp.sum(~jnp.isnan(y)) * jnp.log(2 * jnp.pi))
    slope = (
        -jnp.einsum("tia,ti->a", de, weighted)
        - 0.5 * jnp.einsum("tiia->a", moved)
        + 0.5 * jnp.einsum("ti,tija,tj->a", weighted, dS, weighted)
    )
    information = jnp.einsum("tia,tij,tjb->ab", de, precision, de) + 0.5 * jnp.einsum(
        "tika,tkib->ab", moved, moved
    )
    return _Evidence(
        value,
        jnp.zeros(total).at[columns].set(slope),
        jnp.zeros((total, total)).at[columns[:, None], columns[None, :]].set(information),
    )


@jax.jit
def _signals(systems: LQG, y: Array, u: Array) -> tuple[Array, Array]:
    records = jax.vmap(lambda plant: filter_record(plant, y, u))(systems)
    return records.innovation, records.S


def _free(family: AbstractFamily, theta: np.ndarray) -> np.ndarray:
    low, high = (np.array([getattr(p, end) for p in family.parameters]) for end in ("low", "high"))
    is_continuous = np.array([not parameter.choices for parameter in family.parameters])
    margin = END * (high - low)
    return is_continuous & (theta > low + margin) & (theta < high - margin)


def _inverse(information: np.ndarray) -> np.ndarray:
    """The inverse; infinite if some direction of the parameters does not show in the record."""
    scale = np.sqrt(np.diagonal(information))
    if not np.all(scale > 0):
        return np.full_like(information, np.inf)
    scaled = information / np.outer(scale, scale)
    if len(scale) and np.linalg.eigvalsh(scaled)[0] < LEAST_INFORMATION:
        return np.full_like(information, np.inf)
    return np.linalg.inv(scaled) / np.outer(scale, scale)
