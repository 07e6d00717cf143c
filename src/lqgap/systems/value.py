"""The bias function, the Bellman equation and value targets.

    bias:     h(xhat, y) = xhat' zeta xhat + y'Qy ,    zeta = P - C'QC
    Bellman:  J + h(xhat, y) = min_u { y'Qy + u'Ru + E h(xhat', y') } ,    attained at u = -K xhat

A cost of states adds E [x'Qx x + 2 x'N u] = xhat'Qx xhat + tr(Qx Sigma_filtered) + 2 xhat'N u to a step.

After input u, the next belief is xhat' = sigma + L y' with sigma = (I - LC)(A xhat + B u), so the next
bias is a quadratic function of the next observation y' alone, the *value target*:

    Y(y') = y' Phi y' + linear . y' + constant
    Phi = L' zeta L + Q ,   linear = 2 L' zeta sigma ,   constant = sigma' zeta sigma

If y' ~ N(m, S), whatever plant it comes from,

    E Y   = Y(m) + tr(Phi S)                     Var Y = 4 b'S b + 2 tr((Phi S)^2) ,   b = Phi m + linear / 2
    log E exp(s (Y - E Y)) = 2 s^2 c'(I - 2 s T)^-1 c - s tr T - log det(I - 2 s T) / 2

with T = G'Phi G and c = G'b for any root G G' = S.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import ArrayLike, read_vector
from lqgap.linalg.psd import log_det_psd, quadratic, solve_psd, symmetrize
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
        root = jnp.linalg.cholesky(S)
        T, slope = root.T @ self.Phi @ root, root.T @ self._slope(m)
        identity = jnp.eye(len(m), dtype=S.dtype)
        room = identity - 2 * scale * T
        is_finite = jnp.all(jnp.isfinite(jnp.linalg.cholesky(room)))
        room = jnp.where(is_finite, room, identity)  # so that derivatives stay finite as well
        cumulant = (
            2 * scale**2 * slope @ solve_psd(room, slope) - scale * jnp.trace(T) - 0.5 * log_det_psd(room)
        )
        return jnp.where(is_finite, cumulant, jnp.inf)

    def _slope(self, m: Array) -> Array:
        return self.Phi @ m + 0.5 * self.linear


def bias_matrix(optimum: Optimum, plant: LQG) -> Float[Array, "state state"]:
    """zeta = P - C'QC, written as a sum so that no digits cancel."""
    closed_loop = closed_loop_matrix(optimum, plant)
    K = optimum.K
    zeta = K.T @ plant.R @ K + closed_loop.T @ optimum.P @ closed_loop
    if plant.Qx is not None:
        zeta = zeta + plant.Qx
    return symmetrize(zeta if plant.N is None else zeta - 2 * plant.N @ K)


def bias(optimum: Optimum, plant: LQG, xhat: ArrayLike, y: ArrayLike) -> Float[Array, ""]:
    """h(xhat, y): what starting from here costs more than the average, up to a constant."""
    xhat, y = _read_belief(plant, xhat), _read_output(plant, y)
    return quadratic(xhat, bias_matrix(optimum, plant)) + quadratic(y, plant.Q)


def value_target(optimum: Optimum, plant: LQG, xhat: ArrayLike, u: ArrayLike) -> ValueTarget:
    """The bias after input u, by this plant's filter and cost, as a function of what is seen next."""
    xhat, u = _read_belief(plant, xhat), _read_input(plant, u)
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
    optimum: Optimum, plant: LQG, xhat: ArrayLike, y: ArrayLike, u: ArrayLike
) -> Float[Array, ""]:
    """The cost of this step plus the expected bias of the next, under input u."""
    xhat, y, u = _read_belief(plant, xhat), _read_output(plant, y), _read_input(plant, u)
    expected_output = plant.C @ (plant.A @ xhat + plant.B @ u)
    target = value_target(optimum, plant, xhat, u)
    unseen = 0.0 if plant.Qx is None else jnp.sum(plant.Qx * optimum.Sigma_filtered)
    return plant.cost(xhat, y, u) + unseen + target.mean(expected_output, optimum.S)


def _read_belief(plant: LQG, xhat: ArrayLike) -> Array:
    return read_vector("xhat", xhat, size=plant.num_states, why="it estimates the state")


def _read_output(plant: LQG, y: ArrayLike) -> Array:
    return read_vector("y", y, size=plant.num_outputs, why="there is one entry for each row of C")


def _read_input(plant: LQG, u: ArrayLike) -> Array:
    return read_vector("u", u, size=plant.num_inputs, why="there is one entry for each column of B")
