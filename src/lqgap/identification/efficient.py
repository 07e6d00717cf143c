"""The likeliest plant of a given order, and how sure it is, in coordinates that no choice of states changes.

theta = (A, B, C, F) is judged by its Markov parameters M(theta) alone. With estimated ones that have the
covariance G^-1 (x) S, G = ridge I + sum phi phi',

    misfit(theta) = || S^-1/2 (M - M(theta)) G^1/2 ||_F^2
    information = D'(G (x) S^-1) D ,     D = d vec M(theta) / d theta

is asymptotically -2 log likelihood and its curvature. D has rank n (m + 2p): n^2 directions are changes of
coordinates. Gauss-Newton's method with steps of least norm leaves them alone, and makes of any consistent
realisation an efficient one. What the data leave open is drawn from the normal law of this information; as
modes that nearly cancel make the linearisation wrong, a draw is pulled in until its true misfit is in scale.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from lqgap.batches import in_turn
from lqgap.identification.markov import MarkovEstimate
from lqgap.identification.realization import Realization
from lqgap.linalg.stability import spectral_radius

NUM_STEPS = 6
NUM_HALVINGS = 8
CUTOFF = 1e-8  # of singular values, relative: what is smaller is a change of coordinates
DAMPED = 0.95  # the spectral radius that a predictor is given which is not stable


class MarkovMetric(eqx.Module):
    """How far Markov parameters are from each other, in standard deviations of an estimate."""

    length: int = eqx.field(static=True)
    S_root: Float[Array, "output output"]  # triangular
    whitening: Float[Array, "output output"]  # S^-1/2
    root: Float[Array, "feature feature"]  # G^1/2, triangular

    def __init__(self, estimate: MarkovEstimate):
        S = estimate.parameters.S
        self.length = estimate.length
        self.S_root = jnp.linalg.cholesky(S)
        self.whitening = solve_triangular(self.S_root, jnp.eye(len(S), dtype=S.dtype), lower=True)
        G = in_turn(self.whitening, estimate.precision())
        self.root = jnp.linalg.cholesky(G)

    def coordinates(self, M: Float[Array, "output feature"]) -> Float[Array, " distance"]:
        """Whose squared distances are misfits."""
        return (self.whitening @ M @ self.root).ravel()

    def of_plant(self, realization: Realization) -> Float[Array, " distance"]:
        """Those of a plant's Markov parameters."""
        return self.coordinates(realization.markov(length=self.length).matrix())

    def misfit(self, one: Realization, other: Realization) -> Float[Array, ""]:
        """Between two plants."""
        return jnp.sum((self.of_plant(one) - self.of_plant(other)) ** 2)

    def jacobian(self, realization: Realization) -> Float[Array, "distance parameter"]:
        """Of the coordinates in theta."""
        theta = flatten(realization)
        return jax.jacfwd(lambda theta: self.of_plant(unflatten(theta, realization)))(theta)


class Information(eqx.Module):
    """The eigenpairs of the information, largest last; those that are changes of coordinates are not."""

    values: Float[Array, " parameter"]
    vectors: Float[Array, "parameter parameter"]
    is_seen: Bool[Array, " parameter"]

    def invert(self, g: Float[Array, " parameter"]) -> Float[Array, " parameter"]:
        """The pseudo-inverse, applied to a gradient."""
        return self.vectors @ (self._inverse() * (self.vectors.T @ g))

    def draw(self, normals: Float[Array, " parameter"]) -> Float[Array, " parameter"]:
        """A displacement of theta whose covariance is the pseudo-inverse."""
        return self.vectors @ (jnp.sqrt(self._inverse()) * normals)

    def _inverse(self) -> Array:
        return jnp.where(self.is_seen, 1 / jnp.where(self.is_seen, self.values, 1), 0)


def flatten(realization: Realization) -> Float[Array, " parameter"]:
    """theta as a vector."""
    parts = (realization.A, realization.B, realization.C, realization.F)
    return jnp.concatenate([part.ravel() for part in parts])


def unflatten(theta: Float[Array, " parameter"], like: Realization) -> Realization:
    """The plant of a vector, with the S of another."""
    parts, start = [], 0
    for part in (like.A, like.B, like.C, like.F):
        parts.append(theta[start : start + part.size].reshape(part.shape))
        start += part.size
    A, B, C, F = parts
    return Realization(A, B, C, F, like.S)


def polish(start: Realization, estimate: MarkovEstimate, metric: MarkovMetric) -> Realization:
    """The nearest plant to an estimate, by Gauss-Newton steps that never increase the misfit."""
    wanted = metric.coordinates(estimate.parameters.matrix())
    fractions = 0.5 ** jnp.arange(NUM_HALVINGS, dtype=wanted.dtype)

    def misfit(theta: Array) -> Array:
        candidate = unflatten(theta, start)
        apart = jnp.sum((wanted - metric.of_plant(candidate)) ** 2)
        return jnp.where(spectral_radius(candidate.Abar) < 1, apart, jnp.inf)

    def step(_: Any, now: tuple[Array, Array]) -> tuple[Array, Array]:
        theta, least = now
        plant = unflatten(theta, start)
        move = _least_norm(metric.jacobian(plant), wanted - metric.of_plant(plant))
        tried = theta[None, :] + fractions[:, None] * move[None, :]
        found = jax.vmap(misfit)(tried)
        first = jnp.argmax(found < least)  # the longest step that improves
        is_better = found[first] < least
        return jnp.where(is_better, tried[first], theta), jnp.where(is_better, found[first], least)

    theta = flatten(stable_predictor(start))
    return unflatten(jax.lax.fori_loop(0, NUM_STEPS, step, (theta, misfit(theta)))[0], start)


def stable_predictor(realization: Realization) -> Realization:
    """The plant with its predictor's matrix shrunk, if it is not stable."""
    C, F, Abar = realization.C, realization.F, _finite(realization.Abar)
    radius = spectral_radius(Abar)
    Abar = Abar * jnp.where(radius < 1, 1.0, DAMPED / jnp.maximum(radius, DAMPED))
    return Realization(Abar + F @ C, realization.B, C, F, realization.S)


def information(metric: MarkovMetric, realization: Realization, rank: Array) -> Information:
    """What the data say of theta; `rank` directions are no changes of coordinates."""
    jacobian = _finite(metric.jacobian(realization))
    values, vectors = jnp.linalg.eigh(jacobian.T @ jacobian)
    number = jnp.arange(len(values))[::-1]  # from the largest
    return Information(values, vectors, (number < rank) & (values > 0))


def draw_plants(
    metric: MarkovMetric,
    realization: Realization,
    known: Information,
    *,
    normals: Float[Array, "draw parameter"],
) -> Realization:
    """Plants that the data leave possible, a batch of them, for normal numbers."""
    theta = flatten(realization)
    fractions = 0.5 ** jnp.arange(NUM_HALVINGS + 1, dtype=theta.dtype)

    def one(normals: Array) -> Realization:
        normals = jnp.where(known.is_seen, normals, 0)
        tried = theta[None, :] + fractions[:, None] * known.draw(normals)[None, :]
        plants = jax.vmap(lambda row: unflatten(row, realization))(tried)
        apart = jax.vmap(lambda plant: metric.misfit(plant, realization))(plants)
        is_near = (apart <= 2 * normals @ normals + 1).at[-1].set(True)
        return jax.tree.map(lambda leaf: leaf[jnp.argmax(is_near)], plants)

    return jax.vmap(one)(normals)


def _least_norm(jacobian: Array, residual: Array) -> Array:
    """The least-squares step that does not move along directions that the data do not see."""
    U, s, Vt = jnp.linalg.svd(_finite(jacobian), full_matrices=False)
    is_seen = s > CUTOFF * s[0]
    return Vt.T @ (jnp.where(is_seen, U.T @ residual, 0) / jnp.where(is_seen, s, 1))


def _finite(X: Array) -> Array:
    """Zero where it is not finite: LAPACK may never return from what is infinite."""
    return jnp.where(jnp.isfinite(X), X, 0)
