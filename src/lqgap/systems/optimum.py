"""The stationary optimum of one LQG problem.

    control:  P = A'PA + C'QC - A'PB M^-1 B'PA ,   M = R + B'PB ,   K = M^-1 B'PA ,   u = -K xhat_{t|t}
    filter:   Sigma = A (I - LC) Sigma A' + W ,   S = C Sigma C' + V ,   L = Sigma C' S^-1 ,   F = A L
    cost:     J = tr(P W) + tr(K'MK Sigma_filtered) + tr(Q V) ,   Sigma_filtered = (I - LC) Sigma

Sigma is the covariance of the one-step prediction error x_t - xhat_{t|t-1}. The term tr(Q V) is the
cost of measurement noise in y, which no policy can avoid. With Qx and N in the cost, C'QC + Qx stands for
C'QC and B'PA + N' for B'PA. Where V is singular the filter's equation is solved for Delta = Sigma - W,
whose weights are definite:

    Delta = A (W + Delta) A' - (A W C' + A Delta C') S^-1 (..)' ,   S = (C W C' + V) + C Delta C' .
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.arguments import DEFINITE_TOLERANCE, is_concrete, is_definite
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
from lqgap.linalg.riccati import (
    CIRCLE,
    RiccatiSolution,
    decouple,
    solve_each_riccati,
    solve_riccati,
    unseen_modes,
)
from lqgap.systems.lqg import LQG

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
    optimum = _solve(
        plant, is_noisy=is_concrete(plant.V) and bool(is_definite(np.asarray(plant.V), strictly=True))
    )
    if is_concrete(optimum):
        require_converged(optimum, plant)
    return optimum


def solve_members(systems: LQG) -> Optimum:
    """The optimum of every plant of a batch; failures are marked, not raised."""
    if not is_concrete(systems):
        return jax.vmap(solve)(systems)
    if np.all(is_definite(np.asarray(systems.V), strictly=True)):
        equation = _equation_of_noise(jax.tree.map(np.asarray, systems))
    else:
        equation = jax.jit(jax.vmap(_filter_equation))(systems)
    estimate = solve_each_riccati(equation.A, equation.B, Q=equation.Q, R=equation.R, N=equation.N)
    return map_in_chunks(_optima, (systems, solve_control(systems), estimate, equation.offset))


def solve_control(systems: LQG) -> RiccatiSolution:
    """P, K and M of every plant of a batch whose values are known."""
    known = jax.tree.map(np.asarray, systems)
    return solve_each_riccati(known.A, known.B, Q=known.state_weight, R=known.R, N=known.N)


def require_converged(optimum: Optimum, plant: LQG) -> None:
    """Raise, with the cause, if a plant (or any plant of a batch) has no stationary optimum."""
    if not is_concrete((optimum, plant)):
        raise InvalidArgumentError(
            "require_converged was called under jit or vmap, where values are not known: call it afterwards"
        )
    is_known = isinstance(optimum, Optimum) and isinstance(plant, LQG)
    if not is_known or optimum.K.shape != plant.B.mT.shape:
        raise InvalidArgumentError("expected the result of lqgap.solve, and its plant, or batches of both")
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


class _FilterEquation(eqx.Module):
    """The filter's Riccati equation as one of control, and what its solution falls short of Sigma."""

    A: Float[Any, "*batch n n"]
    B: Float[Any, "*batch n m"]
    Q: Float[Any, "*batch n n"]
    R: Float[Any, "*batch m m"]
    N: Float[Any, "*batch n m"] | None
    offset: Float[Any, "*batch n n"] | None


def _equation_of_noise(plant: LQG) -> _FilterEquation:
    """For Sigma, where V is definite; of one plant or a batch."""
    return _FilterEquation(plant.A.mT, plant.C.mT, plant.W, plant.V, None, None)


def _filter_equation(plant: LQG) -> _FilterEquation:
    """For Sigma itself, or where V is singular for Sigma - W."""
    A, C, W, V = plant.A, plant.C, plant.W, plant.V
    AW = A @ W
    of_rest = (symmetrize(AW @ A.T), symmetrize(C @ W @ C.T + V), AW @ C.T, W)
    of_whole = (W, V, jnp.zeros_like(C.T), jnp.zeros_like(W))
    least = DEFINITE_TOLERANCE * len(V) * jnp.max(jnp.abs(V))
    is_noisy = jnp.linalg.eigvalsh(jax.lax.stop_gradient(V))[0] > least
    return _FilterEquation(
        A.T, C.T, *(jnp.where(is_noisy, whole, rest) for whole, rest in zip(of_whole, of_rest, strict=True))
    )


@functools.partial(jax.jit, static_argnames="is_noisy")
def _solve(plant: LQG, *, is_noisy: bool) -> Optimum:
    control = solve_riccati(plant.A, plant.B, Q=plant.state_weight, R=plant.R, N=plant.N)
    W, V = in_turn(control, (plant.W, plant.V))
    later = eqx.tree_at(lambda p: (p.W, p.V), plant, (W, V))
    dual = _equation_of_noise(later) if is_noisy else _filter_equation(later)
    estimate = solve_riccati(dual.A, dual.B, Q=dual.Q, R=dual.R, N=dual.N)
    return _optimum(plant, control, estimate, dual.offset)


@jax.jit
def _optima(given: tuple[LQG, RiccatiSolution, RiccatiSolution, Array | None]) -> Optimum:
    return jax.vmap(_optimum)(*given)


def _optimum(
    plant: LQG, control: RiccatiSolution, estimate: RiccatiSolution, offset: Array | None
) -> Optimum:
    """From the solutions of both equations."""
    A, C = plant.A, plant.C
    Sigma, S = estimate.P if offset is None else estimate.P + offset, estimate.M
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
    if modes := unseen_modes(*_weighed(plant), is_solved=is_solved, radius=radius):
        raise NotDetectableError(
            f"(A, QC) has no optimum{where}: {describe_modes(modes)} on the unit circle and not observable "
            f"through the cost y'Qy, so that stabilising it ever later is cheaper; it needs a weight in Q "
            f"or Qx"
        )
    if modes := unseen_modes(*_excited(plant), is_solved=is_solved, radius=radius):
        raise NotStabilizableError(
            f"(A, W) has no steady filter{where}: {describe_modes(modes)} on the unit circle and not excited "
            f"by the process noise, so that the filter corrects its estimate ever less; give W a small value "
            f"there, or take a finite horizon (lqgap.solve_finite)"
        )


def _weighed(plant: LQG) -> tuple[Array, Array]:
    """The dynamics without the cross term of the cost, and what of the state the cost then sees."""
    if plant.Qx is None and plant.N is None:
        return plant.A, plant.Q @ plant.C
    return decouple(plant.A, plant.B, Q=plant.state_weight, R=plant.R, N=plant.N)[:2]


def _excited(plant: LQG) -> tuple[Array, Array]:
    """The same of the filter's equation."""
    dual = _filter_equation(plant)
    return decouple(dual.A, dual.B, Q=dual.Q, R=dual.R, N=dual.N)[:2]
