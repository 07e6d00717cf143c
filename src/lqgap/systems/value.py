"""The bias function, the Bellman equation and value targets.

    bias:     h(xhat, y) = xhat' zeta xhat + y'Qy ,    zeta = P - C'QC
    Bellman:  J + h(xhat, y) = min_u { y'Qy + u'Ru + E h(xhat', y') } ,    attained at u = -K xhat

After input u, the next belief is xhat' = sigma + L y' with sigma = (I - LC)(A xhat + B u), so the next
bias is a quadratic function of the next observation y' alone, the *value target*:

    Y(y') = y' Phi y' + linear . y' + constant
    Phi = L' zeta L + Q ,   linear = 2 L' zeta sigma ,   constant = sigma' zeta sigma

If y' ~ N(m, S), whatever plant it comes from,

    E Y   = Y(m) + tr(Phi S)                     Var Y = 4 b'S b + 2 tr((Phi S)^2) ,   b = Phi m + linear / 2
    log E exp(s (Y - E Y)) = 2 s^2 c'(I - 2 s T)^-1 c - s tr T - log det(I - 2 s T) / 2

with T = S^1/2 Phi S^1/2 and c = S^1/2 b.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.linalg.psd import quadratic, sqrt_psd, symmetrize
from lqgap.systems.lqg import LQG
from lqgap.systems.optimum import Optimum, closed_loop_matrix


class ValueTarget(eqx.Module):
    """The bias of the next step as a quadratic function of the next observation."""

    Phi: Float[Array, "output output"]
    linear: Float[Array, " output"]
    constant: Float[Array, ""]

    def __call__(self, y: Float[Array, " output"]) -> Float[Array, ""]:
        """The target that the observation y realises."""
        return quadratic(y, self.Phi) + self.linear @ y + self.constant

    def mean(self, m: Float[Array, " output"], S: Float[Array, "output output"]) -> Float[Array, ""]:
        """Its mean if y ~ N(m, S)."""
        return self(m) + jnp.trace(self.Phi @ S)

    def variance(self, m: Float[Array, " output"], S: Float[Array, "output output"]) -> Float[Array, ""]:
        """Its variance if y ~ N(m, S)."""
        weighted = self.Phi @ S
        return 4 * quadratic(self._slope(m), S) + 2 * jnp.sum(weighted * weighted.T)

    def cumulant(
        self,
        scale: Float[Array, ""],
        m: Float[Array, " output"],
        S: Float[Array, "output output"],
    ) -> Float[Array, ""]:
        """log E exp(scale (Y - E Y)) if y ~ N(m, S); infinite from 2 scale T = I on."""
        root = sqrt_psd(S)
        eigenvalues, vectors = jnp.linalg.eigh(symmetrize(root @ self.Phi @ root))
        slope = vectors.T @ (root @ self._slope(m))
        room = 1 - 2 * scale * eigenvalues
        inside = jnp.where(room > 0, room, 1.0)
        terms = 2 * scale**2 * slope**2 / inside - scale * eigenvalues - 0.5 * jnp.log(inside)
        return jnp.where(jnp.all(room > 0), jnp.sum(terms), jnp.inf)

    def _slope(self, m: Array) -> Array:
        return self.Phi @ m + 0.5 * self.linear


def bias_matrix(optimum: Optimum, plant: LQG) -> Float[Array, "state state"]:
    """zeta = P - C'QC, written as a sum so that no digits cancel."""
    closed_loop = closed_loop_matrix(optimum, plant)
    K = optimum.K
    return symmetrize(K.T @ plant.R @ K + closed_loop.T @ optimum.P @ closed_loop)


def bias(
    optimum: Optimum, plant: LQG, xhat: Float[Array, " state"], y: Float[Array, " output"]
) -> Float[Array, ""]:
    """h(xhat, y): what starting from here costs more than the average, up to a constant."""
    return quadratic(xhat, bias_matrix(optimum, plant)) + quadratic(y, plant.Q)


def value_target(
    optimum: Optimum, plant: LQG, xhat: Float[Array, " state"], u: Float[Array, " input"]
) -> ValueTarget:
    """The bias after input u, by this plant's filter and cost, as a function of what is seen next."""
    predicted = plant.A @ xhat + plant.B @ u
    sigma = predicted - optimum.L @ (plant.C @ predicted)
    zeta = bias_matrix(optimum, plant)
    weighted_gain = optimum.L.T @ zeta
    return ValueTarget(
        Phi=symmetrize(weighted_gain @ optimum.L + plant.Q),
        linear=2 * weighted_gain @ sigma,
        constant=quadratic(sigma, zeta),
    )


def bellman_backup(
    optimum: Optimum,
    plant: LQG,
    xhat: Float[Array, " state"],
    y: Float[Array, " output"],
    u: Float[Array, " input"],
) -> Float[Array, ""]:
    """The cost of this step plus the expected bias of the next, under input u."""
    expected_output = plant.C @ (plant.A @ xhat + plant.B @ u)
    target = value_target(optimum, plant, xhat, u)
    return quadratic(y, plant.Q) + quadratic(u, plant.R) + target.mean(expected_output, optimum.S)
