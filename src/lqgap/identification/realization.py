"""A plant as its predictor, in innovation form, and its coordinates.

    xhat_{t+1} = A xhat_t + B u_t + F e_t ,   y_t = C xhat_t + e_t ,   e ~ N(0, S) ,   Abar = A - F C

This is all that inputs and outputs determine, and all that control needs. A may be singular, so that
F does not determine the filter gain L: chi = A xhat_{t|t} = Abar xhat_{t|t-1} + F y is enough, and
u = -M^-1 B'P chi.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, MatrixLike, read_count, read_covariance
from lqgap.identification.markov import MarkovParameters
from lqgap.linalg import RiccatiSolution, solve_psd, solve_riccati, symmetrize
from lqgap.policies import LinearDynamic
from lqgap.systems import LQG, Optimum


class Realization(eqx.Module):
    """A plant in innovation form, in coordinates of its own."""

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    F: Float[Array, "state output"]
    S: Float[Array, "output output"]

    @property
    def order(self) -> int:
        """The number of states."""
        return len(self.A)

    @property
    def Abar(self) -> Float[Array, "state state"]:
        """A - F C: how errors of the prediction decay."""
        return self.A - self.F @ self.C

    def markov(self, *, length: IntLike) -> MarkovParameters:
        """C Abar^k F and C Abar^k B for k = 0..length-1, and S."""
        rows = _powers(self.Abar, self.C, read_count("length", length, least=1))
        return MarkovParameters(rows @ self.F, rows @ self.B, self.S)

    def optimal_gain(
        self, Q: Float[Array, "output output"], R: Float[Array, "input input"]
    ) -> tuple[RiccatiSolution, Float[Array, "input state"]]:
        """The solution of the control Riccati equation, and G = M^-1 B'P."""
        control = solve_riccati(self.A, self.B, Q=symmetrize(self.C.T @ Q @ self.C), R=R)
        return control, solve_psd(control.M, self.B.T @ control.P)

    def controller(self, *, Q: MatrixLike, R: MatrixLike) -> LinearDynamic:
        """The optimal stationary controller of the plant, as if it were known: Q weighs y, R weighs u."""
        p, m = len(self.C), self.B.shape[1]
        Q = read_covariance("Q", Q, size=p, definite=False, why=f"there are {p} outputs")
        R = read_covariance("R", R, size=m, definite=True, why=f"there are {m} inputs")
        _, gain = self.optimal_gain(Q, R)
        moved = jnp.eye(self.order) - self.B @ gain
        return LinearDynamic(moved @ self.Abar, moved @ self.F, -gain @ self.Abar, -gain @ self.F)


def innovation_form(optimum: Optimum, plant: LQG) -> Realization:
    """A plant whose optimum is known, in the plant's own coordinates."""
    return Realization(plant.A, plant.B, plant.C, optimum.F, optimum.S)


def best_rotation(estimate: Realization, reference: Realization) -> Float[Array, "state state"]:
    """The T = U V' of U s V' = svd(Obs' Obs_ref + Ctr Ctr_ref'), best over all orthogonal matrices.

    With n blocks of Obs = [C; C Abar; ..] and Ctr = [F, B, Abar F, Abar B, ..], it minimises
    ||Obs T - Obs_ref||^2 + ||T' Ctr - Ctr_ref||^2.
    """
    (Obs, Ctr), (Obs_ref, Ctr_ref) = _factors(estimate), _factors(reference)
    U, _, Vt = jnp.linalg.svd(Obs.T @ Obs_ref + Ctr @ Ctr_ref.T)
    return U @ Vt


def rotate(realization: Realization, T: Float[Array, "state state"]) -> Realization:
    """The realisation in the state T'x, for an orthogonal T."""
    A, B, C, F = realization.A, realization.B, realization.C, realization.F
    return Realization(T.T @ A @ T, T.T @ B, C @ T, T.T @ F, realization.S)


def _factors(realization: Realization) -> tuple[Array, Array]:
    n = realization.order
    gains = jnp.concatenate([realization.F, realization.B], axis=1)
    rows, columns = _powers(realization.Abar, realization.C, n), _powers(realization.Abar.T, gains.T, n)
    return rows.reshape(-1, n), columns.reshape(-1, n).T


def _powers(A: Array, C: Array, length: int) -> Array:
    """C A^k for k = 0..length-1, by doubling."""
    rows = C[None]
    while len(rows) < length:
        rows = jnp.concatenate([rows, rows @ A])
        A = A @ A
    return rows[:length]
