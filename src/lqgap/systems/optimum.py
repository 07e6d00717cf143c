"""The stationary optimum of one LQG problem.

    control:  P = A'PA + C'QC - A'PB M^-1 B'PA ,   M = R + B'PB ,   K = M^-1 B'PA ,   u = -K xhat_{t|t}
    filter:   Sigma = A (I - LC) Sigma A' + W ,   S = C Sigma C' + V ,   L = Sigma C' S^-1 ,   F = A L
    cost:     J = tr(P W) + tr(K'MK Sigma_filtered) + tr(Q V) ,   Sigma_filtered = (I - LC) Sigma

Sigma is the covariance of the one-step prediction error x_t - xhat_{t|t-1}. The term tr(Q V) is the
cost of measurement noise in y, which no policy can avoid.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.arguments import is_concrete
from lqgap.batches import in_turn, map_in_chunks
from lqgap.errors import (
    InvalidArgumentError,
    InvalidSystemError,
    NotConvergedError,
    NotDetectableError,
    NotStabilizableError,
)
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.linalg.modes import describe_modes, near_circle, undetectable_modes, unstabilizable_modes
from lqgap.linalg.psd import solve_psd, symmetrize
from lqgap.linalg.riccati import CIRCLE, RiccatiSolution, solve_each_riccati, solve_riccati, unseen_modes
from lqgap.systems.lqg import LQG, require_single

UNREACHABLE = (
    "if it is a constant load or offset, let it decay slowly (0.9999 instead of 1), or add it to the state "
    "of the actuator and let the input be the actuator's change"
)
UNOBSERVED = (
    "if it is an integrator that nothing measures, add a row of C that does, or leave it out of the state"
)


class Optimum(eqx.Module):
    """Gains, covariances and average cost of the optimal stationary controller of a plant."""

    P: Float[Array, "state state"]
    K: Float[Array, "input state"]
    M: Float[Array, "input input"]
    Sigma: Float[Array, "state state"]
    Sigma_filtered: Float[Array, "state state"]
    L: Float[Array, "state output"]
    F: Float[Array, "state output"]
    S: Float[Array, "output output"]
    J: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]  # the larger relative residual of the two Riccati equations
    spectral_radius: Float[Array, ""]  # of the closed loop: the larger of A - BK and A - FC


def solve(plant: LQG) -> Optimum:
    """Solve both Riccati equations; outside `jit` and `vmap`, raises where there is no solution."""
    require_single(plant)
    optimum = _solve(plant)
    if is_concrete(optimum):
        require_converged(optimum, plant)
    return optimum


def solve_members(systems: LQG) -> Optimum:
    """The optimum of every plant of a batch; failures are marked, not raised."""
    if not is_concrete(systems):
        return jax.vmap(solve)(systems)
    A, C, W, V = (np.asarray(X) for X in (systems.A, systems.C, systems.W, systems.V))
    estimate = solve_each_riccati(A.mT, C.mT, Q=W, R=V)
    return map_in_chunks(_optima, (systems, solve_control(systems), estimate))


def solve_control(systems: LQG) -> RiccatiSolution:
    """P, K and M of every plant of a batch whose values are known."""
    A, B, C, Q, R = (np.asarray(X) for X in (systems.A, systems.B, systems.C, systems.Q, systems.R))
    output_cost = C.mT @ Q @ C
    return solve_each_riccati(A, B, Q=0.5 * (output_cost + output_cost.mT), R=R)


def require_converged(optimum: Optimum, plant: LQG) -> None:
    """Raise, with the cause, if a plant (or any plant of a batch) has no stationary optimum."""
    if not is_concrete((optimum, plant)):
        raise InvalidArgumentError(
            "require_converged was called under jit or vmap, where values are not known: call it afterwards"
        )
    for index in np.ndindex(optimum.J.shape):
        member, solution = jax.tree.map(lambda leaf, i=index: leaf[i], (plant, optimum))
        where = f" (plant {index[0] if len(index) == 1 else index} of the batch)" if index else ""
        is_solved = bool(solution.converged & np.isfinite(solution.J))
        _require_modes(
            _revalidate(member, where), where, is_solved=is_solved, radius=solution.spectral_radius
        )
        if not is_solved:
            raise NotConvergedError(
                f"the Riccati equations were not solved{where}: relative residual "
                f"{float(solution.residual):.3g}, closed-loop spectral radius "
                f"{float(solution.spectral_radius):.9g} (must be below 1); "
                f"badly scaled units are the usual cause"
            )


def require_optimum_of(optimum: Optimum, plant: LQG) -> None:
    """Raise unless the optimum has the sizes of the plant: it may be that of another."""
    require_single(plant)
    if not isinstance(optimum, Optimum):
        raise InvalidArgumentError(
            f"optimum is a {type(optimum).__name__}, expected the result of lqgap.solve"
        )
    sizes = (plant.num_inputs, plant.num_states), (plant.num_states, plant.num_outputs)
    if (optimum.K.shape, optimum.L.shape) != sizes:
        raise InvalidArgumentError(
            f"optimum has gains of shapes {optimum.K.shape} and {optimum.L.shape}, expected {sizes[0]} and "
            f"{sizes[1]}: it is the optimum of another plant"
        )


def closed_loop_matrix(optimum: Optimum, plant: LQG) -> Float[Array, "state state"]:
    """A - BK: how the state moves under the optimal input when it is known."""
    return plant.A - plant.B @ optimum.K


def predictor_matrix(optimum: Optimum, plant: LQG) -> Float[Array, "state state"]:
    """A - FC = A (I - LC): how an error of the prediction xhat_{t|t-1} decays."""
    return plant.A - optimum.F @ plant.C


def belief_covariance(optimum: Optimum, plant: LQG) -> Float[Array, "state state"]:
    """X = (A - BK) X (A - BK)' + L S L' of xhat_{t|t} under the optimal input, once it is stationary."""
    return lyapunov_sum(closed_loop_matrix(optimum, plant), optimum.L @ optimum.S @ optimum.L.T)


def filter_matrix(optimum: Optimum, plant: LQG) -> Float[Array, "state state"]:
    """(I - LC) A: how an error of the filtered xhat_{t|t} decays."""
    return plant.A - optimum.L @ (plant.C @ plant.A)


@jax.jit
def _solve(plant: LQG) -> Optimum:
    A, B, C = plant.A, plant.B, plant.C
    control = solve_riccati(A, B, Q=symmetrize(C.T @ plant.Q @ C), R=plant.R)
    W, V = in_turn(control, (plant.W, plant.V))
    estimate = solve_riccati(A.T, C.T, Q=W, R=V)
    return _optimum(plant, control, estimate)


@jax.jit
def _optima(given: tuple[LQG, RiccatiSolution, RiccatiSolution]) -> Optimum:
    return jax.vmap(_optimum)(*given)


def _optimum(plant: LQG, control: RiccatiSolution, estimate: RiccatiSolution) -> Optimum:
    """From the solutions of both equations."""
    A, C = plant.A, plant.C
    Sigma, S = estimate.P, estimate.M
    L = solve_psd(S, C @ Sigma).T
    correction = jnp.eye(len(A)) - L @ C
    Sigma_filtered = symmetrize(correction @ Sigma @ correction.T + L @ plant.V @ L.T)
    J = (
        jnp.trace(control.P @ plant.W)
        + jnp.trace(control.K.T @ control.M @ control.K @ Sigma_filtered)
        + jnp.trace(plant.Q @ plant.V)
    )
    return Optimum(
        P=control.P,
        K=control.K,
        M=control.M,
        Sigma=Sigma,
        Sigma_filtered=Sigma_filtered,
        L=L,
        F=A @ L,
        S=S,
        J=J,
        converged=control.converged & estimate.converged,
        residual=jnp.maximum(control.residual, estimate.residual),
        spectral_radius=jnp.maximum(control.spectral_radius, estimate.spectral_radius),
    )


def _revalidate(plant: LQG, where: str) -> LQG:
    """Check the values of a plant that was built under tracing, when they were not known."""
    try:
        return LQG(**plant.matrices())
    except InvalidSystemError as error:
        raise InvalidSystemError(f"{error}{where}") from None


def _require_modes(plant: LQG, where: str, *, is_solved: bool, radius: Array) -> None:
    """Raise if modes of the plant forbid an optimum: those that nothing can move, sees, weighs or excites."""
    A = plant.A
    if not is_solved and (modes := unstabilizable_modes(A, plant.B)):
        raise NotStabilizableError(
            f"(A, B) is not stabilisable{where}: {describe_modes(modes)} not controllable through B; "
            f"{UNREACHABLE if near_circle(modes, CIRCLE) else 'the plant needs another input'}"
        )
    if not is_solved and (modes := undetectable_modes(A, plant.C)):
        raise NotDetectableError(
            f"(A, C) is not detectable{where}: {describe_modes(modes)} not observable through C; "
            f"{UNOBSERVED if near_circle(modes, CIRCLE) else 'the plant needs another sensor'}"
        )
    if modes := unseen_modes(A, plant.Q @ plant.C, is_solved=is_solved, radius=radius):
        raise NotDetectableError(
            f"(A, QC) has no optimum{where}: {describe_modes(modes)} on the unit circle and not observable "
            f"through the cost y'Qy, so that stabilising it ever later is cheaper; it needs a weight in Q"
        )
    if modes := unseen_modes(A.T, plant.W, is_solved=is_solved, radius=radius):
        raise NotStabilizableError(
            f"(A, W) has no steady filter{where}: {describe_modes(modes)} on the unit circle and not excited "
            f"by the process noise, so that the filter corrects its estimate ever less; give W a small value "
            f"there, or take a finite horizon (lqgap.solve_finite)"
        )
