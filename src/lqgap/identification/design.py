"""The optimal controller of a plant in innovation form, what it costs, and whether it suits other plants.

With s = xhat_{t|t-1}, e = y - C s, P and M of the control Riccati equation, T = I - BG,

    chi = A s + F e ,   u = -G chi ,   s_+ = chi + B u ,   G = M^-1 B'P ,   Phat = P T
    J = tr(Q S) + tr(F' Phat F S)

need neither noise covariances nor a filter gain, and allow A to be singular. By the envelope theorem, with
the covariance of chi, X = (AT) X (AT)' + F S F',

    dJ/dA = 2 Phat A T X T' ,   dJ/dB = -2 (A' Phat A + C'QC) T X G'
    dJ/dC = 2 Q C T X T' ,      dJ/dF = 2 Phat F S

On another plant (a, b, c) the loop in (x, s) is

    [ a - b G F c     -b G Abar ]
    [   T F c           T Abar  ]
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lqgap.identification.realization import Realization
from lqgap.linalg import spectral_radius, symmetrize
from lqgap.linalg.lyapunov import lyapunov_sum


class Design(eqx.Module):
    """A plant, its optimal gain, what deviations from it cost, and the average cost."""

    plant: Realization
    G: Float[Array, "input state"]
    M: Float[Array, "input input"]
    Phat: Float[Array, "state state"]
    J: Float[Array, ""]
    is_sound: Bool[Array, ""]  # the equation is solved, and all numbers are finite

    @property
    def T(self) -> Float[Array, "state state"]:
        """I - BG: from chi to the next prediction."""
        return jnp.eye(self.plant.order) - self.plant.B @ self.G

    def loop_radius(self, other: Realization) -> Float[Array, ""]:
        """The spectral radius of the loop of this controller and another plant."""
        a, b, c = other.A, other.B, other.C
        F, Abar, G, T = self.plant.F, self.plant.Abar, self.G, self.T
        loop = jnp.block([[a - b @ G @ F @ c, -b @ G @ Abar], [T @ F @ c, T @ Abar]])
        is_finite = jnp.all(jnp.isfinite(loop))
        return jnp.where(is_finite, spectral_radius(jnp.where(is_finite, loop, 0)), jnp.inf)

    def cost_gradient(self, *, Q: Float[Array, "output output"]) -> Realization:
        """dJ/dtheta, in the shape of a plant; that of S is Q + F' Phat F."""
        A, C, F, S = self.plant.A, self.plant.C, self.plant.F, self.plant.S
        T, Phat = self.T, self.Phat
        X = symmetrize(lyapunov_sum(A @ T, F @ S @ F.T))
        return Realization(
            A=2 * Phat @ A @ T @ X @ T.T,
            B=-2 * (A.T @ Phat @ A + C.T @ Q @ C) @ T @ X @ self.G.T,
            C=2 * Q @ C @ T @ X @ T.T,
            F=2 * Phat @ F @ S,
            S=Q + F.T @ Phat @ F,
        )


def design(plant: Realization, *, Q: Float[Array, "output output"], R: Float[Array, "input input"]) -> Design:
    """The optimal controller of a plant, for `jit` and `vmap`."""
    F, S, (control, G) = plant.F, plant.S, plant.optimal_gain(Q, R)
    Phat = symmetrize(control.P - control.P @ plant.B @ G)
    J = jnp.trace(Q @ S) + jnp.trace(F.T @ Phat @ F @ S)
    is_finite = jnp.all(jnp.isfinite(G)) & jnp.all(jnp.isfinite(F)) & jnp.isfinite(J)
    return Design(plant, G, control.M, Phat, J, control.converged & is_finite)
