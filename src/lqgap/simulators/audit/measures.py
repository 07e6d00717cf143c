"""What the audit measures of every member: norms, decay, margins of controllability and observability.

The margin of (A, B) is the smallest singular value of [A - lambda I, B] over the modes lambda of A, relative
to the size of A, with B scaled to that size and its columns to one, whatever the units of inputs: how small a
change of the matrices makes a mode uncontrollable. For stable A the Gramian adds how unequally controllable
the modes are: its smallest eigenvalue, relative to the largest; it also detects what repeated modes hide from
the first test. Neither forms powers of A.

Equations are solved in JAX, one kind at a time; the rest is NumPy on whole batches.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.arguments import is_definite
from lqgap.linalg import StrongStability, certify_by_lyapunov, certify_by_weight
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.simulators.finite import Finite
from lqgap.systems import closed_loop_matrix, filter_matrix, predictor_matrix
from lqgap.systems.optimum import solve_members

NUM_POWERS, NUM_DOUBLINGS = 60, 24  # over which Phi(A) = sup ||A^k|| / rho(A)^k is taken
TINY = np.finfo(float).tiny  # a pair of zeros has margin zero, not an undefined one
Figures = Float[np.ndarray, " member"]


class Measures(eqx.Module):
    """A figure for each member; those of its optimum are NaN where it has none."""

    has_optimum: Bool[np.ndarray, " member"]
    spectral_radius: Figures
    transient_growth: Figures  # Phi(A), infinite if it never settles
    open_loop: StrongStability  # of A
    predictor: StrongStability  # of A - FC
    filter: StrongStability  # of (I - LC) A
    contraction: Figures  # ||A - BK||
    controllability: Figures  # of (A, B)
    observability: Figures  # of (A, C)
    controllability_of_gain: Figures  # of (A, F), which needs an invertible A
    controllability_of_predictor: Figures  # of (A - FC, [F, B]), which identification needs
    control_gramian: Figures
    observation_gramian: Figures
    norm_system: Figures  # max of ||A||, ||B||, ||C||
    norm_cost: Figures  # max of ||Q||, ||R||
    norm_K: Figures
    norm_P: Figures
    norm_Sigma: Figures
    norm_L: Figures
    norm_F: Figures
    norm_W: Figures
    norm_V: Figures
    norm_V_inverse: Figures
    noise_deviation: Figures  # of W, V, S0 from the identity, in units in which W and V of the first are that
    closed_loop: Float[np.ndarray, "member state state"]


def measure_members(members: Finite) -> Measures:
    """The figures of all members."""
    systems = members.systems
    optima = solve_members(systems)
    has_optimum = np.asarray(optima.converged)
    A, B, C = (np.asarray(X) for X in (systems.A, systems.B, systems.C))
    Abar, calA, closed_loop = (
        np.where(has_optimum[:, None, None], jax.vmap(matrix)(optima, systems), np.nan)
        for matrix in (predictor_matrix, filter_matrix, closed_loop_matrix)
    )
    K, P, Sigma, Sigma_filtered, L, F = (
        np.where(has_optimum[:, None, None], X, np.nan)
        for X in (optima.K, optima.P, optima.Sigma, optima.Sigma_filtered, optima.L, optima.F)
    )
    radius = _largest_mode(A)
    return Measures(
        has_optimum=has_optimum,
        spectral_radius=radius,
        transient_growth=_transient_growth(A, radius),
        open_loop=_by_lyapunov(A),
        predictor=_certify(Abar, Sigma),
        filter=_certify(calA, Sigma_filtered),
        contraction=_norm(closed_loop),
        controllability=controllability(A, B),
        observability=controllability(_transpose(A), _transpose(C)),
        controllability_of_gain=controllability(A, F),
        controllability_of_predictor=controllability(Abar, np.concatenate([F, B], axis=2)),
        control_gramian=_gramian_ratio(A, B),
        observation_gramian=_gramian_ratio(_transpose(A), _transpose(C)),
        norm_system=np.max([_norm(A), _norm(B), _norm(C)], axis=0),
        norm_cost=np.maximum(_norm(systems.Q), _norm(systems.R)),
        norm_K=_norm(K),
        norm_P=_norm(P),
        norm_Sigma=_norm(Sigma),
        norm_L=_norm(L),
        norm_F=_norm(F),
        norm_W=_norm(systems.W),
        norm_V=_norm(systems.V),
        norm_V_inverse=_norm_of_inverse(np.asarray(systems.V)),
        noise_deviation=np.max(
            [
                _deviation(systems.W, systems.W[0]),
                _deviation(systems.V, systems.V[0]),
                _deviation(systems.S0, systems.W[0]),
            ],
            axis=0,
        ),
        closed_loop=closed_loop,
    )


def controllability(A: Float[np.ndarray, "member n n"], B: Float[np.ndarray, "member n m"]) -> Figures:
    """The smallest singular value of [A - lambda I, B] over the modes of A, in units of ||A|| = ||B|| = 1."""

    def of_finite(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        A, B = (X / np.maximum(_norm(X), TINY)[:, None, None] for X in (A, _unit_columns(B)))
        shifted = A[:, None] - np.linalg.eigvals(A)[:, :, None, None] * np.eye(A.shape[1])
        pencils = np.concatenate([shifted, np.repeat(B[:, None], A.shape[1], axis=1)], axis=3)
        return np.linalg.svd(pencils, compute_uv=False)[..., -1].min(axis=1)

    return _where_finite(of_finite, A, B)


def _certify(X: np.ndarray, weight: np.ndarray) -> StrongStability:
    """By the covariance that X maintains; where that is singular (noise-free states), by Lyapunov."""
    by_weight, by_lyapunov = _by_weight(X, weight), _by_lyapunov(X)
    values = np.linalg.eigvalsh(np.nan_to_num(weight))
    is_sound = (values[:, 0] > 1e-10 * values[:, -1]) & (by_weight.gamma > 0)
    return jax.tree.map(lambda one, other: np.where(is_sound, one, other), by_weight, by_lyapunov)


def _transient_growth(A: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The largest norm of (A / rho)^k over k = 0..NUM_POWERS and then over k doubled NUM_DOUBLINGS times.

    A defective dominant mode grows like k: its last doubling still doubles the norm. All others settle.
    """
    is_nilpotent = radius <= 1e-100 * _norm(A)
    scaled = A / np.where(is_nilpotent, 1.0, radius)[:, None, None]
    power = np.broadcast_to(np.eye(A.shape[1]), A.shape)
    norms = [_norm(power)]
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is NaN in the norms: it grows
        for count in range(NUM_POWERS + NUM_DOUBLINGS):
            power = power @ (scaled if count < NUM_POWERS else power)
            norms.append(_largest_singular(power))
    settles = norms[-1] <= 1.5 * np.max(norms[:-1], axis=0)
    return np.where(settles & ~is_nilpotent, np.max(norms, axis=0), np.inf)


def _largest_singular(X: np.ndarray) -> np.ndarray:
    # The largest eigenvalue of X'X is cheaper than a singular value decomposition.
    return np.sqrt(_where_finite(lambda Y: np.linalg.eigvalsh(Y)[:, -1], _transpose(X) @ X))


def _gramian_ratio(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    B = _unit_columns(B)
    gramians = np.asarray(_lyapunov_sums(A, B @ _transpose(B)))

    def ratio(X: np.ndarray) -> np.ndarray:
        values = np.linalg.eigvalsh(X)
        return np.maximum(values[:, 0], 0) / np.maximum(values[:, -1], TINY)

    return _where_finite(ratio, gramians)


def _deviation(X: Array, unit: Array) -> np.ndarray:
    """|| U^-1 X U'^-1 - I || with UU' = unit; infinite if that is singular."""
    values, vectors = np.linalg.eigh(np.asarray(unit))
    if values[0] <= 1e-13 * values[-1]:
        return np.full(len(X), np.inf)
    inverse_root = (vectors / np.sqrt(values)).T
    return _norm(inverse_root @ np.asarray(X) @ inverse_root.T - np.eye(len(values)))


def _unit_columns(B: np.ndarray) -> np.ndarray:
    return B / np.maximum(np.linalg.norm(B, axis=1, keepdims=True), TINY)


def _largest_mode(X: np.ndarray) -> np.ndarray:
    return np.max(np.abs(np.linalg.eigvals(X)), axis=1)


def _norm_of_inverse(V: np.ndarray) -> np.ndarray:
    """Infinite where an output has no noise of its own."""
    smallest = np.linalg.eigvalsh(V)[:, 0]
    return np.where(is_definite(V, strictly=True), 1 / np.where(smallest > 0, smallest, 1), np.inf)


def _norm(X: Array | np.ndarray) -> np.ndarray:
    return _where_finite(lambda X: np.linalg.norm(X, ord=2, axis=(1, 2)), np.asarray(X))


def _where_finite(function: Callable[..., np.ndarray], *batches: np.ndarray) -> np.ndarray:
    """Apply a function to the members whose matrices are all finite; the others are NaN."""
    finite = np.all([np.all(np.isfinite(X), axis=(1, 2)) for X in batches], axis=0)
    answer = np.full(len(batches[0]), np.nan)
    if np.any(finite):
        answer[finite] = function(*(X[finite] for X in batches))
    return answer


def _transpose(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, 1, 2)


def _by_lyapunov(X: np.ndarray) -> StrongStability:
    return jax.tree.map(np.asarray, _mapped_lyapunov(X))


def _by_weight(X: np.ndarray, weight: np.ndarray) -> StrongStability:
    return jax.tree.map(np.asarray, _mapped_weight(X, weight))


_mapped_lyapunov = jax.jit(jax.vmap(certify_by_lyapunov))
_mapped_weight = jax.jit(jax.vmap(certify_by_weight))
_lyapunov_sums = jax.jit(jax.vmap(lambda A, Q: lyapunov_sum(jnp.asarray(A), jnp.asarray(Q))))
