"""D_H = (H+1) J* - V*: what the first and the last steps of a finite horizon cost less than the average.

With E_j = P - P^(j) (j steps to go, P^(0) = C'QC) and G_h = Sigma - Sigma_{h|h-1}, which obey

    E_{j+1} = (A - BK)' E_j (A - BK^(j)) ,   E_0 = P - C'QC
    G_{h+1} = Abar G_h (A - A L_h C)' ,      G_0 = Sigma - S0

and with Sigma_f, the covariance of the stationary filter,

    g_h = Sigma_f - Sigma_{h|h} = (I - LC) G_h (I - L_hC)'
    D_H = sum_h tr(E_{H-h} (Sigma_{h|h-1} - Sigma_{h|h})) + sum_h { tr(P (G_h - g_h)) + tr(C'QC g_h) }
    D_inf = sum_j tr(E_j (Sigma - Sigma_f))               + the same sum over all h

D_inf is the sharp constant. The explicit bound has the paper's structure,

    |D_H| <= a_0 s / (1 - gamma_1) + kappa_2 b_0 [ tr(P)(1 + cc) + tr(C'QC) cc ] / gamma_2
    a_0 = ||E_0|| sup ||products of A - BK^(j)|| ,   b_0 = ||G_0|| sup ||products of A - A L_hC||
    s = sup tr(Sigma_{h|h-1} - Sigma_{h|h}) ,        cc = ||I - LC|| sup ||I - L_hC||

with the suprema taken along the recursions, so that W, V and S0 may be anything; the bound needs closed loops
that contract, ||A - BK|| <= gamma_1 < 1. D_H does not depend on coordinates, the bound does."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lqgap.arguments import FloatLike
from lqgap.errors import NotConvergedError
from lqgap.linalg.psd import solve_psd, symmetrize
from lqgap.linalg.riccati import riccati_step
from lqgap.linalg.stability import spectral_norm
from lqgap.simulators import Audit
from lqgap.systems import LQG, Optimum, bias_matrix, closed_loop_matrix, predictor_matrix
from lqgap.theory.constants.norms import Norms

MAX_STEPS = 1_000_000
NEGLIGIBLE = 1e-18  # of what was there at first: smaller differences change no digit of a sum


class Transients(eqx.Module):
    """D_H of every member: its limit, its value at a horizon and the explicit bound of its size."""

    limit: Float[np.ndarray, " member"]
    at_horizon: Float[np.ndarray, " member"]
    bound: Float[np.ndarray, " member"]


class Recursions(eqx.Module):
    """Both recursions at one step, what they have summed up, and the suprema met."""

    E: Float[Array, "state state"]
    G: Float[Array, "state state"]
    control_product: Float[Array, "state state"]
    filter_product: Float[Array, "state state"]
    control_sum: Float[Array, ""]
    filter_sum: Float[Array, ""]
    control_growth: Float[Array, ""]
    filter_growth: Float[Array, ""]
    correction: Float[Array, ""]
    information: Float[Array, ""]
    step: Int[Array, ""]
    settled: Bool[Array, ""]


def transients(audit: Audit, *, horizon: FloatLike) -> Transients:
    """D_H of the members of an audited class, in the coordinates of the audit."""
    members = audit.members
    optima, systems = members.optima(), members.systems
    runs = run_recursions(optima, systems)
    if not bool(jnp.all(runs.settled)):
        index = int(jnp.argmin(runs.settled))
        raise NotConvergedError(
            f"the finite optimum of member {index} ({members.describe(index)}) has not settled after "
            f"{MAX_STEPS} steps: a mode of its closed loop or filter is nearly marginal"
        )
    limit = np.asarray(runs.control_sum + runs.filter_sum)
    # From twice the steps on after which both recursions have settled, D_H is its limit to the last digit.
    settled = 2 * int(jnp.max(runs.step))
    at_horizon = limit if horizon >= settled else np.asarray(_at_horizon(optima, systems, int(horizon)))
    return Transients(limit=limit, at_horizon=at_horizon, bound=_bound(audit, optima, runs))


def printed_transient_bound(audit: Audit, norms: Norms) -> float:
    """As printed: n a_0 / (1 - gamma_1) + n kappa_2 (b_0 + c_0) / gamma_2, b_0 = (1 + N_Sigma) N_Sigma^.5."""
    if not norms.are_usable:
        return float("inf")
    optima, systems = audit.members.optima(), audit.members.systems
    runs, keep = run_recursions(optima, systems), _keep(optima.L, systems.C)
    a_0 = np.max(_norm(jax.vmap(bias_matrix)(optima, systems)) * runs.control_growth)
    b_0 = (1 + norms.N_Sigma) * np.sqrt(norms.N_Sigma)
    c_0 = np.max(_norm(keep)) * norms.N_S * b_0
    return float(norms.num_states * (a_0 / (1 - norms.gamma_1) + norms.kappa_2 * (b_0 + c_0) / norms.gamma_2))


@jax.jit
@jax.vmap
def run_recursions(optimum: Optimum, plant: LQG) -> Recursions:
    """Both recursions of every member of a batch in one loop, until neither has anything left to add."""
    E_0, G_0 = bias_matrix(optimum, plant), symmetrize(optimum.Sigma - plant.S0)
    gained = optimum.Sigma - optimum.Sigma_filtered
    identity, zero = jnp.eye(len(plant.A)), jnp.asarray(0.0)

    def goes_on(run: Recursions) -> Array:
        return ~run.settled & (run.step < MAX_STEPS)

    def step(run: Recursions) -> Recursions:
        E, control_factor = _control_step(optimum, plant, run.E)
        after = _filter_step(optimum, plant, run.G)
        control_product = run.control_product @ control_factor
        filter_product = run.filter_product @ after.factor.T
        count = run.step + 1
        left = jnp.linalg.norm(E) <= NEGLIGIBLE * jnp.linalg.norm(E_0) / count
        right = jnp.linalg.norm(after.G) <= NEGLIGIBLE * jnp.linalg.norm(G_0) / count
        return Recursions(
            E=E,
            G=after.G,
            control_product=control_product,
            filter_product=filter_product,
            control_sum=run.control_sum + jnp.sum(run.E * gained),
            filter_sum=run.filter_sum + after.term,
            control_growth=jnp.maximum(run.control_growth, spectral_norm(control_product)),
            filter_growth=jnp.maximum(run.filter_growth, spectral_norm(filter_product)),
            correction=jnp.maximum(run.correction, after.correction),
            information=jnp.maximum(run.information, jnp.trace(after.gained)),
            step=count,
            settled=left & right,
        )

    one = jnp.asarray(1.0)  # the norm of an empty product
    start = Recursions(
        E_0, G_0, identity, identity, zero, zero, one, one, zero, zero, jnp.asarray(0), jnp.asarray(False)
    )
    return jax.lax.while_loop(goes_on, step, start)


def _bound(audit: Audit, optima: Optimum, runs: Recursions) -> np.ndarray:
    systems, measures = audit.members.systems, audit.measures
    output_cost = np.einsum("kji,kjl,klm->kim", systems.C, systems.Q, systems.C)
    keep = _norm(_keep(optima.L, systems.C)) * np.asarray(runs.correction)
    a_0 = _norm(jax.vmap(bias_matrix)(optima, systems)) * runs.control_growth
    b_0 = _norm(optima.Sigma - systems.S0) * runs.filter_growth
    weights = _trace(optima.P) * (1 + keep) + _trace(output_cost) * keep
    gamma_1, filters = measures.contraction, measures.predictor
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = a_0 * runs.information / (1 - gamma_1) + filters.kappa * b_0 * weights / filters.gamma
    return np.where((gamma_1 < 1) & (filters.gamma > 0), bound, np.inf)


class _Filtered(eqx.Module):
    G: Float[Array, "state state"]
    factor: Float[Array, "state state"]  # A - A L_h C
    gained: Float[Array, "state state"]  # Sigma_{h|h-1} - Sigma_{h|h}
    correction: Float[Array, ""]  # ||I - L_h C||
    term: Float[Array, ""]  # of the second sum


def _control_step(optimum: Optimum, plant: LQG, E: Array) -> tuple[Array, Array]:
    output_cost = symmetrize(plant.C.T @ plant.Q @ plant.C)
    K = riccati_step(optimum.P - E, plant.A, plant.B, Q=output_cost, R=plant.R).K
    factor = plant.A - plant.B @ K
    return symmetrize(closed_loop_matrix(optimum, plant).T @ E @ factor), factor


def _filter_step(optimum: Optimum, plant: LQG, G: Array) -> _Filtered:
    A, C = plant.A, plant.C
    Sigma = optimum.Sigma - G
    L = solve_psd(symmetrize(C @ Sigma @ C.T + plant.V), C @ Sigma).T
    keep, steady_keep = jnp.eye(len(A)) - L @ C, jnp.eye(len(A)) - optimum.L @ C
    factor, g = A @ keep, steady_keep @ G @ keep.T
    output_cost = C.T @ plant.Q @ C
    return _Filtered(
        G=symmetrize(predictor_matrix(optimum, plant) @ G @ factor.T),
        factor=factor,
        gained=symmetrize(L @ C @ Sigma),
        correction=spectral_norm(keep),
        term=jnp.sum(optimum.P * (G - g)) + jnp.sum(output_cost * g),
    )


@eqx.filter_jit
def _at_horizon(optima: Optimum, systems: LQG, horizon: int) -> Array:
    def of_member(member: tuple[Optimum, LQG]) -> Array:
        optimum, plant = member

        def control(E: Array, _: None) -> tuple[Array, Array]:
            return _control_step(optimum, plant, E)[0], E

        def estimate(carry: tuple[Array, Array], E: Array) -> tuple[tuple[Array, Array], None]:
            G, total = carry
            after = _filter_step(optimum, plant, G)
            return (after.G, total + after.term + jnp.sum(E * after.gained)), None

        _, Es = jax.lax.scan(control, bias_matrix(optimum, plant), length=horizon + 1)
        start = (symmetrize(optimum.Sigma - plant.S0), jnp.asarray(0.0))
        return jax.lax.scan(estimate, start, Es, reverse=True)[0][1]

    return jax.lax.map(of_member, (optima, systems))


def _keep(L: Array, C: Array) -> np.ndarray:
    return np.eye(L.shape[1]) - np.asarray(L) @ np.asarray(C)


def _norm(X: Any) -> np.ndarray:
    return np.linalg.norm(np.asarray(X), ord=2, axis=(1, 2))


def _trace(X: Any) -> np.ndarray:
    return np.trace(np.asarray(X), axis1=1, axis2=2)
