"""The discrete Riccati equation and its recursion.

    P = Q + A'PA - A'PB (R + B'PB)^-1 B'PA ,    K = M^-1 B'PA ,    M = R + B'PB

The stabilising solution comes from structured doubling (Chu, Fan, Lin, Wang 2004, "Structure-
preserving algorithms for periodic discrete-time algebraic Riccati equations"): with
G_0 = B R^-1 B', H_0 = Q, A_0 = A and Y_k = (I + G_k H_k)^-1,

    A_{k+1} = A_k Y_k A_k ,   G_{k+1} = G_k + A_k Y_k G_k A_k' ,   H_{k+1} = H_k + A_k' H_k Y_k A_k

H_k is the cost over 2^k steps and A_k vanishes like (A - BK)^(2^k): convergence is quadratic. Where rounding
leaves a residual (cheap control makes G large), Newton's method takes it away: each step solves the Lyapunov
equation of the present gain. The derivative of the solution is that of the equation at fixed K (K minimises,
so its change does not count):

    dP = (A-BK)' dP (A-BK) + dQ + K' dR K + sym[ 2 (A-BK)' P (dA - dB K) ]
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lqgap.arguments import (
    SEMIDEFINITE_TOLERANCE,
    MatrixLike,
    is_concrete,
    read_covariance,
    read_pair,
)
from lqgap.errors import NotConvergedError, NotDetectableError, NotStabilizableError
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.linalg.modes import STABILITY_MARGIN, describe_modes, undetectable_modes, unstabilizable_modes
from lqgap.linalg.psd import solve_psd, symmetrize
from lqgap.linalg.stability import spectral_radius

MAX_DOUBLINGS = 50  # 2^50 steps: enough for a closed loop of spectral radius 1 - 1e-13
RESIDUAL_TOLERANCE = 1e-7  # relative; what is worse is not called a solution
REFINED = 1e-13  # a residual that needs no refinement
MAX_REFINEMENTS = 8


class RiccatiStep(eqx.Module):
    """One step back in time: cost matrix P, and the gain K and weight M of the input before it."""

    P: Float[Array, "n n"]
    K: Float[Array, "m n"]
    M: Float[Array, "m m"]


class RiccatiSolution(eqx.Module):
    """The stabilising solution, and how well it solves the equation and stabilises."""

    P: Float[Array, "n n"]
    K: Float[Array, "m n"]
    M: Float[Array, "m m"]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]
    spectral_radius: Float[Array, ""]


def solve_riccati(A: MatrixLike, B: MatrixLike, *, Q: MatrixLike, R: MatrixLike) -> RiccatiSolution:
    """Find the stabilising P; outside `jit`, raises where there is none."""
    A, B = read_pair(A, B)
    Q = read_covariance("Q", Q, size=len(A), definite=False, why="it weighs the rows of A")
    R = read_covariance("R", R, size=B.shape[1], definite=True, why="it weighs the columns of B")
    solution = _solve(A, B, Q, R)
    if is_concrete(solution):
        _require_solution(solution, A, B, Q)
    return solution


def riccati_step(
    P: Float[Array, "n n"],
    A: Float[Array, "n n"],
    B: Float[Array, "n m"],
    *,
    Q: Float[Array, "n n"],
    R: Float[Array, "m m"],
) -> RiccatiStep:
    """From the cost matrix of the next step to that of this one, in the form that stays PSD."""
    M = symmetrize(R + B.T @ P @ B)
    K = solve_psd(M, B.T @ P @ A)
    closed_loop = A - B @ K
    P_before = symmetrize(Q + K.T @ R @ K + closed_loop.T @ P @ closed_loop)
    return RiccatiStep(P=P_before, K=K, M=M)


def riccati_recursion(
    P_last: Float[Array, "n n"],
    A: Float[Array, "n n"],
    B: Float[Array, "n m"],
    *,
    Q: Float[Array, "n n"],
    R: Float[Array, "m m"],
    num_steps: int,
) -> RiccatiStep:
    """`num_steps` steps back from `P_last`, stacked in order of time (the earliest first)."""

    def step(P: Array, _: None) -> tuple[Array, RiccatiStep]:
        before = riccati_step(P, A, B, Q=Q, R=R)
        return before.P, before

    _, steps = jax.lax.scan(step, P_last, length=num_steps, reverse=True)
    return steps


@jax.jit
def _solve(A: Array, B: Array, Q: Array, R: Array) -> RiccatiSolution:
    P = _stabilizing_solution(A, B, Q, R)
    step = riccati_step(P, A, B, Q=Q, R=R)
    residual = jax.lax.stop_gradient(_distance(step.P, P))
    radius = spectral_radius(jax.lax.stop_gradient(A - B @ step.K))
    # Under tracing nobody has looked at Q; an indefinite R has failed in its Cholesky factor already.
    weights = jnp.linalg.eigvalsh(jax.lax.stop_gradient(Q))
    is_valid = weights[0] >= -SEMIDEFINITE_TOLERANCE * len(A) * weights[-1]
    return RiccatiSolution(
        P=P,
        K=step.K,
        M=step.M,
        converged=is_valid & (residual <= RESIDUAL_TOLERANCE) & (radius < 1 - STABILITY_MARGIN),
        residual=residual,
        spectral_radius=radius,
    )


@jax.custom_jvp
def _stabilizing_solution(A: Array, B: Array, Q: Array, R: Array) -> Array:
    num_states = len(A)
    identity = jnp.eye(num_states)
    epsilon = jnp.finfo(A.dtype).eps

    def goes_on(carry: tuple[Array, ...]) -> Array:
        power, _, H, increment, count = carry
        # A small increment alone may be an unstable mode that has yet to show in the cost.
        done = (increment <= epsilon * jnp.linalg.norm(H)) & (
            jnp.linalg.norm(power) <= 1e-8 * jnp.linalg.norm(A)
        )
        return ~done & jnp.isfinite(increment) & (count < MAX_DOUBLINGS)

    def double(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        power, G, H, _, count = carry
        solved = jnp.linalg.solve(identity + G @ H, jnp.concatenate([power, G], axis=1))
        Y_power, Y_G = solved[:, :num_states], solved[:, num_states:]
        increment = power.T @ H @ Y_power
        return (
            power @ Y_power,
            symmetrize(G + power @ Y_G @ power.T),
            symmetrize(H + increment),
            jnp.linalg.norm(increment),
            count + 1,
        )

    largest = jnp.asarray(jnp.finfo(A.dtype).max, A.dtype)
    start = (A, symmetrize(B @ solve_psd(R, B.T)), Q, largest, jnp.asarray(0))
    return _refine(jax.lax.while_loop(goes_on, double, start)[2], A, B, Q, R)


@_stabilizing_solution.defjvp
def _stabilizing_solution_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    A, B, Q, R = primals
    dA, dB, dQ, dR = tangents
    P = _stabilizing_solution(A, B, Q, R)
    K = riccati_step(P, A, B, Q=Q, R=R).K
    closed_loop = A - B @ K
    drift = closed_loop.T @ P @ (dA - dB @ K)
    change = dQ + K.T @ dR @ K + drift + drift.T
    return P, symmetrize(lyapunov_sum(closed_loop.T, change))


def _refine(P: Array, A: Array, B: Array, Q: Array, R: Array) -> Array:
    """Newton steps while there is a residual and each makes it smaller."""

    def residual(P: Array) -> Array:
        return _distance(riccati_step(P, A, B, Q=Q, R=R).P, P)

    def goes_on(carry: tuple[Array, ...]) -> Array:
        _, error, previous, count = carry
        return (error > REFINED) & (error < 0.5 * previous) & (count < MAX_REFINEMENTS)

    def newton(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        P, error, _, count = carry
        K = riccati_step(P, A, B, Q=Q, R=R).K
        candidate = symmetrize(lyapunov_sum((A - B @ K).T, Q + K.T @ R @ K))
        candidate_error = residual(candidate)
        is_better = candidate_error < error
        return (
            jnp.where(is_better, candidate, P),
            jnp.where(is_better, candidate_error, error),
            error,
            count + 1,
        )

    start = (P, residual(P), jnp.asarray(jnp.inf, P.dtype), jnp.asarray(0))
    return jax.lax.while_loop(goes_on, newton, start)[0]


def _distance(X: Array, Y: Array) -> Array:
    return jnp.linalg.norm(X - Y) / jnp.maximum(jnp.linalg.norm(Y), jnp.finfo(Y.dtype).tiny)


def _require_solution(solution: RiccatiSolution, A: Array, B: Array, Q: Array) -> None:
    if unreachable := unstabilizable_modes(A, B):
        raise NotStabilizableError(
            f"(A, B) is not stabilisable: the modes {describe_modes(unreachable)} of A are not controllable "
            f"through B"
        )
    if hidden := undetectable_modes(A, Q):
        raise NotDetectableError(
            f"(A, Q) is not detectable: the modes {describe_modes(hidden)} of A do not show in the "
            f"cost x'Qx, so the cheapest input leaves them alone"
        )
    if not solution.converged:
        raise NotConvergedError(
            f"the Riccati equation was not solved: relative residual {float(solution.residual):.3g}, "
            f"closed-loop spectral radius {float(solution.spectral_radius):.9g} (must be below 1); "
            f"badly scaled units are the usual cause"
        )
