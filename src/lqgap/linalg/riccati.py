"""The discrete Riccati equation and its recursion.

    P = Q + A'PA - A'PB (R + B'PB)^-1 B'PA ,    K = M^-1 B'PA ,    M = R + B'PB

The stabilising solution comes from structured doubling (Chu, Fan, Lin, Wang 2004, "Structure-preserving
algorithms for periodic discrete-time algebraic Riccati equations"),

    A_0 = A ,   G_0 = B R^-1 B' ,   H_0 = Q ,   Y_k = (I + G_k H_k)^-1
    A_{k+1} = A_k Y_k A_k ,   G_{k+1} = G_k + A_k Y_k G_k A_k' ,   H_{k+1} = H_k + A_k' H_k Y_k A_k

H_k is the cost over 2^k steps and A_k vanishes like (A - BK)^(2^k): convergence is quadratic. Where rounding
leaves a residual (cheap control makes G large), Newton's method takes it away: each step solves the Lyapunov
equation of the present gain.

An unstable mode that Q does not see costs nothing if it is left alone, and doubling does leave it alone: it
ends at a solution that does not stabilise. Then, and where units differ too much, a second attempt starts
from the cost X > 0 of a last state, in units that balance the equation. With K and M of one step from X, it
finds H, the difference of P to X, from

    A_0 = A - BK ,   G_0 = B M^-1 B' ,   H_0 = Q + K'RK + A_0' X A_0 - X

which is the start above for X = 0. It ends at the stabilising solution, unless a mode on the unit circle is
unseen: the recursion would stabilise that one ever more slowly, and there is none. Rounding must not pretend
that it moved such a mode, so that A and B are divided by 1 + CIRCLE until Newton's method takes over.

A cross term 2 x'N u of the cost goes away with the input v = u + R^-1 N'x, which leaves P and M as they are:

    A - B R^-1 N' ,   Q - N R^-1 N' ,   K = K_v + R^-1 N'

The derivative of the solution is that of the equation at fixed K (K minimises, so its change does not count):

    dP = (A-BK)' dP (A-BK) + dQ + K' dR K + sym[ 2 (A-BK)' P (dA - dB K) ]
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lqgap.arguments import (
    SEMIDEFINITE_TOLERANCE,
    FloatLike,
    MatrixLike,
    is_concrete,
    read_array,
    read_covariance,
    read_pair,
    read_symmetric,
    require_shape,
)
from lqgap.batches import map_in_chunks
from lqgap.errors import NotConvergedError, NotDetectableError, NotStabilizableError
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.linalg.modes import (
    STABILITY_MARGIN,
    describe_modes,
    near_circle,
    undetectable_modes,
    unstabilizable_modes,
)
from lqgap.linalg.psd import solve_psd, symmetrize
from lqgap.linalg.stability import spectral_radius

MAX_DOUBLINGS = 50  # 2^50 steps: enough for a closed loop of spectral radius 1 - 1e-13
RESIDUAL_TOLERANCE = 1e-7  # relative; what is worse is not called a solution
REFINED = 1e-13  # a residual that needs no refinement
MAX_REFINEMENTS = 8
CIRCLE = 1e-6  # unseen modes nearer to the unit circle than this have no stationary answer
SLOW = 1e-3  # rounding moves an unseen double mode by eps^(1/4) off the circle
NUM_BALANCINGS = 20
FEW = 64  # equations that are solved one after the other


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


def solve_riccati(
    A: MatrixLike, B: MatrixLike, *, Q: MatrixLike, R: MatrixLike, N: MatrixLike | None = None
) -> RiccatiSolution:
    """Find the stabilising P; outside `jit`, raises where there is none.

    Args:
        N: the cost of a step is x'Qx + 2 x'N u + u'Ru.
    """
    A, B = read_pair(A, B)
    if N is None:
        Q = read_covariance("Q", Q, size=len(A), definite=False, why="it weighs the rows of A")
    else:
        Q, N = (
            read_symmetric("Q", Q, size=len(A), why="it weighs the rows of A"),
            read_array("N", N, num_axes=2),
        )
        require_shape("N", N, B.shape, why="it weighs the rows of A with the columns of B")
    R = read_covariance("R", R, size=B.shape[1], definite=True, why="it weighs the columns of B")
    size = jnp.linalg.norm(Q)  # before what the cross term takes away, which may be all of it
    A, Q, shift = decouple(A, B, Q=Q, R=R, N=N)
    solution = _solve(A, B, Q, R, size)
    if is_concrete(solution):
        _require_solution(solution, A, B, Q)
    return solution if shift is None else replace(solution, K=solution.K + shift)


def solve_each_riccati(
    A: Float[Any, "batch n n"],
    B: Float[Any, "batch n m"],
    *,
    Q: Float[Any, "batch n n"],
    R: Float[Any, "batch m m"],
    N: Float[Any, "batch n m"] | None = None,
) -> RiccatiSolution:
    """The solutions of a batch of equations, with failures marked; batches of all sizes share a program."""
    given = (A, B, Q, R, N)
    return map_in_chunks(_solve_each, given) if is_concrete(given) else _solve_each(given)


def decouple(
    A: Float[Array, "n n"],
    B: Float[Array, "n m"],
    *,
    Q: Float[Array, "n n"],
    R: Float[Array, "m m"],
    N: Float[Array, "n m"] | None,
) -> tuple[Float[Array, "n n"], Float[Array, "n n"], Float[Array, "m n"] | None]:
    """A and Q of the same problem without its cross term, and by how much its gain K is less."""
    if N is None:
        return A, Q, None
    shift = solve_psd(R, N.T)
    return A - B @ shift, symmetrize(Q - N @ shift), shift


def unseen_modes(A: MatrixLike, Q: MatrixLike, *, is_solved: bool, radius: FloatLike) -> list[complex]:
    """Modes on the unit circle that x'Qx does not see, which forbid a stabilising solution.

    Rounding may have moved them off the circle and solved the equation: only a fast loop is above suspicion.
    """
    if is_solved and radius < 1 - SLOW:
        return []
    return near_circle(undetectable_modes(A, Q), CIRCLE if is_solved else SLOW)


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
    N: Float[Array, "n m"] | None = None,
    num_steps: int,
) -> RiccatiStep:
    """`num_steps` steps back from `P_last`, stacked in order of time (the earliest first)."""
    A, Q, shift = decouple(A, B, Q=Q, R=R, N=N)

    def step(P: Array, _: None) -> tuple[Array, RiccatiStep]:
        before = riccati_step(P, A, B, Q=Q, R=R)
        return before.P, before if shift is None else replace(before, K=before.K + shift)

    _, steps = jax.lax.scan(step, P_last, length=num_steps, reverse=True)
    return steps


@jax.jit
def _solve(A: Array, B: Array, Q: Array, R: Array, size: Array) -> RiccatiSolution:
    step, residual, radius = _stabilizing_step(A, B, Q, R)
    # Under tracing Q has not been checked; an indefinite R has failed in its Cholesky factor already.
    _, Q = jax.lax.optimization_barrier((radius, Q))  # batched LAPACK routines must not run side by side
    weights = jnp.linalg.eigvalsh(jax.lax.stop_gradient(Q))
    is_valid = weights[0] >= -SEMIDEFINITE_TOLERANCE * len(A) * size
    return RiccatiSolution(
        P=step.P,
        K=step.K,
        M=step.M,
        converged=is_valid & _is_solved(residual, radius),
        residual=residual,
        spectral_radius=radius,
    )


@jax.jit
def _solve_each(given: tuple[Array, Array, Array, Array, Array | None]) -> RiccatiSolution:
    solve_one = lambda A, B, Q, R, N: solve_riccati(A, B, Q=Q, R=R, N=N)  # noqa: E731
    if len(given[0]) > FEW:
        return jax.vmap(solve_one)(*given)
    return jax.lax.map(lambda equation: solve_one(*equation), given)  # slower, and compiled in half the time


@jax.custom_jvp
def _stabilizing_step(A: Array, B: Array, Q: Array, R: Array) -> tuple[RiccatiStep, Array, Array]:
    """P with its K and M, the relative residual of its equation and the radius of its closed loop."""

    def goes_on(carry: tuple[Any, ...]) -> Array:
        _, residual, radius, attempt = carry
        return ~_is_solved(residual, radius) & (attempt < 2)

    def try_again(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        attempt = carry[-1]
        P, step, is_settled = _attempt(A, B, Q, R, is_first=attempt == 0)
        found = RiccatiStep(P=P, K=step.K, M=step.M)
        residual = jnp.where(is_settled, _distance(step.P, P), jnp.inf)
        return found, residual, spectral_radius(A - B @ step.K), attempt + 1

    infinite = jnp.asarray(jnp.inf, A.dtype)
    nothing = RiccatiStep(P=Q, K=jnp.zeros_like(B.T), M=R)
    return jax.lax.while_loop(goes_on, try_again, (nothing, infinite, infinite, jnp.asarray(0)))[:3]


@_stabilizing_step.defjvp
def _stabilizing_step_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Any, Any]:
    A, B, _, _ = primals
    dA, dB, dQ, dR = tangents
    found, residual, radius = _stabilizing_step(*primals)
    P, K = found.P, found.K
    closed_loop = A - B @ K
    drift = closed_loop.T @ P @ (dA - dB @ K)
    change = dQ + K.T @ dR @ K + drift + drift.T
    dP = symmetrize(lyapunov_sum(closed_loop.T, change))
    _, moved = jax.jvp(lambda P, A, B, Q, R: riccati_step(P, A, B, Q=Q, R=R), (P, *primals), (dP, *tangents))
    moved = RiccatiStep(P=dP, K=moved.K, M=moved.M)
    return (found, residual, radius), (moved, jnp.zeros_like(residual), jnp.zeros_like(radius))


def _is_solved(residual: Array, radius: Array) -> Array:
    # An unseen mode on the circle with the cost p has a residual of p^2 and a closed loop of 1 - p.
    margin = jnp.maximum(STABILITY_MARGIN, jnp.sqrt(residual))
    return (residual <= RESIDUAL_TOLERANCE) & (radius < 1 - margin)


def _attempt(A: Array, B: Array, Q: Array, R: Array, *, is_first: Array) -> tuple[Array, RiccatiStep, Array]:
    """By plain doubling, or in other units and from the cost of a last state; what `_refine` returns."""
    G = symmetrize(B @ solve_psd(R, B.T))
    plain = _Start(jnp.ones_like(A[0]), jnp.zeros_like(A[0, 0]), A, G, Q)
    again = jnp.where(is_first, 0, 1)  # a loop, so that the common case has nothing of it
    start = jax.lax.fori_loop(0, again, lambda _, start: _balanced_start(start, A, B, Q, R), plain)
    P, step, is_settled = _refine(_double(start), *_in_units(start.units, A, B, Q), R)
    inverse = 1 / start.units[None, :]
    back = inverse * inverse.T
    return P * back, RiccatiStep(P=step.P * back, K=step.K * inverse, M=step.M), is_settled


class _Start(eqx.Module):
    """Where doubling starts: units of the states, the cost last x'x of the last state, and A_0, G_0, H_0."""

    units: Float[Array, " n"]
    last: Float[Array, ""]
    A: Float[Array, "n n"]
    G: Float[Array, "n n"]
    H: Float[Array, "n n"]


def _in_units(units: Array, A: Array, B: Array, Q: Array) -> tuple[Array, Array, Array]:
    across, inverse = units[None, :], 1 / units[:, None]
    return A * (across * inverse), B * inverse, Q * (across * across.T)


def _balanced_start(plain: _Start, A: Array, B: Array, Q: Array, R: Array) -> _Start:
    units = _balance(A, plain.G, Q)
    A, B, Q = _in_units(units, A, B, Q)
    last = jnp.linalg.norm(Q) + 1 / jnp.linalg.norm(plain.G / units[None, :] / units[:, None])
    A, B, X = A / (1 + CIRCLE), B / (1 + CIRCLE), last * jnp.eye(len(A))
    step = riccati_step(X, A, B, Q=Q, R=R)
    G = symmetrize(B @ solve_psd(step.M, B.T))
    return _Start(units, last, A - B @ step.K, G, step.P - X)


def _balance(A: Array, G: Array, Q: Array) -> Array:
    """Units of the states, powers of two, in which rows of (A, G) are about as large as columns of (A, Q)."""
    others = jnp.abs(A - jnp.diag(jnp.diagonal(A)))
    reach, weight = jnp.sqrt(jnp.diagonal(G)), jnp.sqrt(jnp.maximum(jnp.diagonal(Q), 0))

    def balance(_: Array, units: Array) -> Array:
        scaled = others * units[None, :] / units[:, None]
        rows, columns = jnp.sum(scaled, axis=1) + reach / units, jnp.sum(scaled, axis=0) + weight * units
        is_known = (rows > 0) & (columns > 0)
        ratio = jnp.where(is_known, rows, 1) / jnp.where(is_known, columns, 1)
        return units * jnp.exp2(jnp.round(0.5 * jnp.log2(ratio)))

    return jax.lax.fori_loop(0, NUM_BALANCINGS, balance, jnp.ones_like(reach))


def _double(start: _Start) -> Array:
    """The cost over so many steps that more do not matter, after which the state costs last x'x."""
    num_states = len(start.A)
    identity = jnp.eye(num_states)
    epsilon, size = jnp.finfo(start.A.dtype).eps, jnp.linalg.norm(start.A)

    def goes_on(carry: tuple[Array, ...]) -> Array:
        power, _, H, increment, count = carry
        # A small increment alone may be an unstable mode that has yet to show in the cost.
        done = (increment <= epsilon * (start.last + jnp.linalg.norm(H))) & (
            jnp.linalg.norm(power) <= 1e-8 * size
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

    largest = jnp.asarray(jnp.finfo(size.dtype).max, size.dtype)
    first = (start.A, start.G, start.H, largest, jnp.asarray(0))
    return start.last * identity + jax.lax.while_loop(goes_on, double, first)[2]


def _refine(P: Array, A: Array, B: Array, Q: Array, R: Array) -> tuple[Array, RiccatiStep, Array]:
    """Newton steps while there is a residual and each makes it smaller: P, its step, and whether they ended.

    To a stabilising solution convergence is quadratic; with modes on the circle it goes on and on.
    """

    def goes_on(carry: tuple[Any, ...]) -> Array:
        _, error, previous, _ = carry
        return (error > REFINED) & (error < previous)

    def newton(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        present, error, _, count = carry
        K = present[1].K
        candidate = symmetrize(lyapunov_sum((A - B @ K).T, Q + K.T @ R @ K))
        step = riccati_step(candidate, A, B, Q=Q, R=R)
        candidate_error = _distance(step.P, candidate)
        is_better = candidate_error < error
        better = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), (candidate, step), present)
        return better, jnp.where(is_better, candidate_error, error), error, count + 1

    step = riccati_step(P, A, B, Q=Q, R=R)
    start = ((P, step), _distance(step.P, P), jnp.asarray(jnp.inf, P.dtype), jnp.asarray(0))
    end = jax.lax.while_loop(lambda c: goes_on(c) & (c[-1] < MAX_REFINEMENTS), newton, start)
    return *end[0], ~goes_on(end)


def _distance(X: Array, Y: Array) -> Array:
    return jnp.linalg.norm(X - Y) / jnp.maximum(jnp.linalg.norm(Y), jnp.finfo(Y.dtype).tiny)


def _require_solution(solution: RiccatiSolution, A: Array, B: Array, Q: Array) -> None:
    if not solution.converged and (modes := unstabilizable_modes(A, B)):
        raise NotStabilizableError(
            f"(A, B) is not stabilisable: {describe_modes(modes)} not controllable through B"
        )
    if modes := unseen_modes(A, Q, is_solved=bool(solution.converged), radius=solution.spectral_radius):
        raise NotDetectableError(
            f"(A, Q) has no stabilising solution: {describe_modes(modes)} on the unit circle and not "
            f"observable through the cost x'Qx, so that stabilising ever more slowly is ever cheaper"
        )
    if not solution.converged:
        raise NotConvergedError(
            f"the Riccati equation was not solved: relative residual {float(solution.residual):.3g}, "
            f"closed-loop spectral radius {float(solution.spectral_radius):.9g} (must be below 1); "
            f"badly scaled units are the usual cause"
        )
