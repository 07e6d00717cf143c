"""The optimum over a finite horizon: H + 1 costs, from x_0 ~ N(0, S0).

    control, h = H..0:   K_h = M_h^-1 B'P_{h+1}A ,   M_h = R + B'P_{h+1}B ,   P_h = C'QC + A'P_{h+1}(A - BK_h)
    filter,  h = 0..H:   S_h = C Sigma_h C' + V ,    L_h = Sigma_h C' S_h^-1 ,
                         Sigma_{h|h} = (I - L_hC) Sigma_h ,   Sigma_{h+1} = A Sigma_{h|h} A' + W
    value = tr(P_{H+1} Sigma_{H+1}) + sum_h [ tr(P_h (Sigma_h - Sigma_{h|h})) + tr(C'QC Sigma_{h|h} + QV) ]

with Sigma_0 = S0. Sigma_h stands for Sigma_{h|h-1}, the covariance before y_h is seen. The optimal input is
u_h = -K_h xhat_{h|h}, in filter form: y_h is known when u_h is chosen. What the state left at H is worth:

    the task ends:     P_{H+1} = 0: the last input has no effect but its own cost, so K_H = 0
    the task goes on:  P_{H+1} = P, the stabilising solution, so K_h = K, M_h = M and P_h = P at every step

For a cost of states C'QC + Qx stands for C'QC, and B'PA + N' for B'PA.

x'Px is what the future costs from the state x on, up to a constant that no input changes, if the optimal
controller acts from then on. So with it `value` differs by such a constant from the cost of all time.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, is_concrete, read_count
from lqgap.batches import in_turn
from lqgap.errors import NotConvergedError
from lqgap.linalg.riccati import RiccatiSolution, RiccatiStep, riccati_recursion, solve_riccati
from lqgap.systems.kalman import plan_filter
from lqgap.systems.lqg import LQG

MAX_ENTRIES = 20_000_000  # of each stack of matrices: 160 MB


class FiniteOptimum(eqx.Module):
    """Gains and covariances of every step h = 0..H, and the optimal cost `value`."""

    P: Float[Array, "time state state"]
    K: Float[Array, "time input state"]
    M: Float[Array, "time input input"]
    Sigma: Float[Array, "time state state"]
    Sigma_filtered: Float[Array, "time state state"]
    L: Float[Array, "time state output"]
    S: Float[Array, "time output output"]
    value: Float[Array, ""]


def solve_finite(plant: LQG, *, horizon: IntLike, ends: bool = True) -> FiniteOptimum:
    """The optimal controller for steps 0..horizon (a whole number), and its cost.

    Args:
        ends: whether the task ends there; if not, the state left then costs x'Px, as in the future.
    """
    most = MAX_ENTRIES // plant.num_states**2
    finite = _solve_finite(plant, read_count("horizon", horizon, least=0, most=most), ends)
    if is_concrete(finite) and not jnp.isfinite(finite.value):
        raise NotConvergedError(
            f"the optimal cost of steps 0..{horizon} is beyond double precision: an unstable mode is not "
            f"detectable or not stabilisable, or the units are badly scaled (lqgap.solve names the mode)"
        )
    return finite


def plan_finite(plant: LQG, steady: RiccatiSolution | None, *, horizon: int) -> FiniteOptimum:
    """The optimum of a task that ends, or of one that goes on with the stabilising solution."""
    weight = plant.state_weight
    P_last = jnp.zeros_like(plant.A)
    if steady is None:
        control = riccati_recursion(
            P_last, plant.A, plant.B, Q=weight, R=plant.R, N=plant.N, num_steps=horizon + 1
        )
    else:
        P_last = jnp.where(steady.converged, steady.P, jnp.nan)
        control = jax.tree.map(
            lambda constant: jnp.broadcast_to(constant, (horizon + 1, *constant.shape)),
            RiccatiStep(P_last, steady.K, steady.M),
        )
    estimate = plan_filter(in_turn(control.P, plant), num_steps=horizon + 1)
    Sigma_last = plant.A @ estimate.Sigma_filtered[-1] @ plant.A.T + plant.W
    value = (
        jnp.sum(control.P * (estimate.Sigma - estimate.Sigma_filtered))
        + jnp.sum(weight * jnp.sum(estimate.Sigma_filtered, axis=0))
        + jnp.sum(P_last * Sigma_last)
        + (horizon + 1) * jnp.trace(plant.Q @ plant.V)
    )
    return FiniteOptimum(
        P=control.P,
        K=control.K,
        M=control.M,
        Sigma=estimate.Sigma,
        Sigma_filtered=estimate.Sigma_filtered,
        L=estimate.L,
        S=estimate.S,
        value=value,
    )


@eqx.filter_jit
def _solve_finite(plant: LQG, horizon: int, ends: bool) -> FiniteOptimum:
    weight = plant.state_weight
    steady = None if ends else solve_riccati(plant.A, plant.B, Q=weight, R=plant.R, N=plant.N)
    return plan_finite(plant, steady, horizon=horizon)
