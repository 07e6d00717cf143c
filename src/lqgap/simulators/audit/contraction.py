"""One weighted norm in which every closed loop of a class contracts.

Find X with I <= X <= condition I and the smallest gamma such that, for every closed loop Z of the class,

    Z' X Z <= gamma^2 X ,      that is      || X^1/2 Z X^-1/2 || <= gamma .

For a given gamma this is a linear matrix inequality; gamma is found by bisection. Only a few members bind, so
the inequality is solved for an active set, verified on all members, and the worst offenders join the set.
"""

import warnings
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.linalg import inverse_sqrt_psd, spectral_norm, spectral_radius, sqrt_psd
from lqgap.linalg.lyapunov import lyapunov_sum

MAX_CONDITION = 1e8  # of X, in coordinates that suit the class: beyond it the norm is one in name only
PRECISION = 2e-3  # of gamma, relative to its distance to 1
NUM_JOINING = 4


class Contraction(eqx.Module):
    """A weight X, the contraction factor it proves for all members, and the limiting member."""

    weight: Float[np.ndarray, "state state"]
    gamma: float
    condition: float
    member: int

    @property
    def holds(self) -> bool:
        """Whether all closed loops contract."""
        return self.gamma < 1


def find_contraction(closed_loops: Float[np.ndarray, "member state state"]) -> Contraction:
    """The smallest common contraction factor; 1 or more if no weight of sane condition was found."""
    radii = np.asarray(_radii(closed_loops))
    best = _verify(np.eye(closed_loops.shape[1]), closed_loops)
    if np.max(radii) >= 1:
        return best
    # In coordinates in which the loops contract on average, so that units do not decide what is found.
    sums = np.asarray(_lyapunov_sums(closed_loops))
    if not np.all(np.isfinite(sums)):
        return best
    average = np.mean(sums / np.trace(sums, axis1=1, axis2=2)[:, None, None], axis=0)
    root = np.linalg.cholesky(average).T
    scaled = root @ closed_loops @ np.linalg.inv(root)
    best = min(best, _verify(average, closed_loops), key=lambda contraction: contraction.gamma)
    active = list(dict.fromkeys([int(np.argmax(radii)), best.member]))
    while True:
        candidate = _solve(scaled[active], float(np.max(radii)))
        if candidate is None:
            return best
        weight, proven = root.T @ candidate[0] @ root, candidate[1]
        norms = np.asarray(weighted_norms(closed_loops, jnp.asarray(weight)))
        best = min(best, _verify(weight, closed_loops), key=lambda contraction: contraction.gamma)
        bound = proven + PRECISION * (1 - proven)
        joining = [int(i) for i in np.argsort(-norms)[:NUM_JOINING] if norms[i] > bound and i not in active]
        if not joining:
            return best
        active += joining


@jax.jit
def weighted_norms(
    matrices: Float[Array, "member state state"], weight: Float[Array, "state state"]
) -> Float[Array, " member"]:
    """|| X^1/2 Z X^-1/2 || of every matrix Z."""
    root, inverse_root = sqrt_psd(weight), inverse_sqrt_psd(weight)
    return jax.vmap(lambda Z: spectral_norm(root @ Z @ inverse_root))(matrices)


@jax.jit
def _lyapunov_sums(matrices: Array) -> Array:
    return jax.vmap(lambda Z: lyapunov_sum(Z.T, jnp.eye(len(Z))))(matrices)


@jax.jit
def _radii(matrices: Array) -> Array:
    return jax.vmap(spectral_radius)(matrices)


def _verify(weight: np.ndarray, closed_loops: np.ndarray) -> Contraction:
    norms = np.asarray(weighted_norms(closed_loops, jnp.asarray(weight)))
    member = int(np.argmax(norms))
    return Contraction(weight, float(norms[member]), float(np.linalg.cond(weight)), member)


def _solve(closed_loops: np.ndarray, lowest: float) -> tuple[np.ndarray, float] | None:
    """Bisect gamma for the active members between their largest spectral radius and 1."""
    feasible = _inequality(closed_loops)
    low, high = lowest, 1.0 - 1e-9
    weight = feasible(high)
    if weight is None:
        return None
    while high - low > PRECISION * (1 - low):
        gamma = 0.5 * (low + high)
        candidate = feasible(gamma)
        if candidate is None:
            low = gamma
        else:
            weight, high = candidate, gamma
    return weight, high


def _inequality(closed_loops: np.ndarray) -> Callable[[float], np.ndarray | None]:
    """The feasibility problem as a function of gamma, set up once."""
    import cvxpy as cp  # slow to import and needed by the audit alone

    size = closed_loops.shape[1]
    X, condition, square = cp.Variable((size, size), symmetric=True), cp.Variable(), cp.Parameter(nonneg=True)
    identity = np.eye(size)
    constraints = [X >> identity, X << condition * identity, condition <= MAX_CONDITION]
    for Z in closed_loops:
        image = Z.T @ X @ Z
        constraints.append(square * X - 0.5 * (image + image.T) >> 0)
    problem = cp.Problem(cp.Minimize(condition), constraints)

    def feasible(gamma: float) -> np.ndarray | None:
        square.value = gamma**2
        try:
            with warnings.catch_warnings():  # an inaccurate answer is no answer: it is checked below
                warnings.simplefilter("ignore", UserWarning)
                problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return None
        if problem.status != cp.OPTIMAL or X.value is None:
            return None
        return 0.5 * (X.value + X.value.T)

    return feasible
