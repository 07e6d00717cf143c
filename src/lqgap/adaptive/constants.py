"""The constants of LQG-VTR, and scales for them that come from the class alone.

The constants of the theory are so large that the score never reaches one (`lqgap.theory.constants` has them).
Calibrated ones put the standard deviation of a target in the place of its largest value. Under member i's own
optimal controller the belief has covariance X = Acl X Acl' + L S L', Acl = A - BK, and a target the variance

    var_i = E Var(Y) = 4 tr(S G X G') + 2 tr((Phi S)^2) ,    G = (L' zeta + QC) Acl ,   Phi = L' zeta L + Q .

    psi = mean_i var_i ,        beta = 8 max_i var_i log(N / delta) ,
    length: the first l with  |S^{-1/2} C Abar^l A| (tr X)^{1/2} <= 1e-3  for all members,
    state_bound = 10 max_i (tr X)^{1/2} ,
    max_switches = 1 + (N - 1) log2(1 + N H / (8 (N - 1)))
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.reading import read_members
from lqgap.linalg import solve_lyapunov
from lqgap.linalg.arguments import read_count, read_positive, read_probability
from lqgap.systems import LQG, Optimum, bias_matrix, require_converged, solve
from lqgap.systems.optimum import closed_loop_matrix, predictor_matrix
from lqgap.theory.corrected import episodes

CLIPPED = 1e-3  # of an innovation's standard deviation: what clipping the history may change
MAX_LENGTH = 1000


class VTRConstants(eqx.Module):
    """What the procedure can be tuned by.

    Args:
        psi: the score's regulariser: how much evidence makes a switch.
        beta: the radius of the confidence set.
        length: of the clipped history.
        state_bound: M_x, the norm of a belief beyond which the algorithm halts.
        num_warmup: steps of random inputs at the start.
        sigma_u: their standard deviation.
        max_switches: Kbar.
    """

    psi: float
    beta: float
    length: int = eqx.field(static=True)
    state_bound: float
    num_warmup: int = eqx.field(static=True, default=0)
    sigma_u: float = 1.0
    max_switches: int = eqx.field(static=True, default=1_000_000)

    def __check_init__(self) -> None:
        for name in ("psi", "beta", "state_bound", "sigma_u"):
            read_positive(name, getattr(self, name))
        read_count("length", self.length, least=1)
        read_count("num_warmup", self.num_warmup, least=0, most=100_000_000)
        read_count("max_switches", self.max_switches, least=0, most=1_000_000)


def calibrate(members: Any, *, horizon: Any, delta: Any = 0.05) -> VTRConstants:
    """Constants of the size of what the members' own controllers meet, without knowledge of the truth."""
    systems = read_members(members)
    horizon = read_count("horizon", horizon, least=1, most=100_000_000)
    delta = read_probability("delta", delta)
    optima = jax.vmap(solve)(systems)
    require_converged(optima, systems)
    variance, root_mean_square, decay = (np.asarray(part) for part in _scales(systems, optima))
    too_long = np.any(decay > CLIPPED, axis=0)
    if too_long[-1]:
        raise InvalidArgumentError(
            f"some member's filter remembers more than {MAX_LENGTH} steps: give the constants, or prune "
            f"the class"
        )
    count = len(variance)
    return VTRConstants(
        psi=float(np.mean(variance)),
        beta=8 * float(np.max(variance)) * math.log(max(count, 2) / delta),
        length=int(np.max(np.flatnonzero(too_long), initial=-1)) + 2,  # the first column is that of length 1
        state_bound=10 * float(np.max(root_mean_square)),
        max_switches=math.ceil(episodes(count, float(horizon))),
    )


def target_variance(optimum: Optimum, plant: LQG, X: Array) -> Array:
    """E Var(Y) in the stationary closed loop, where the belief has covariance X."""
    zeta, L, S = bias_matrix(optimum, plant), optimum.L, optimum.S
    slope = (L.T @ zeta + plant.Q @ plant.C) @ closed_loop_matrix(optimum, plant)
    weighted = (L.T @ zeta @ L + plant.Q) @ S
    return 4 * jnp.trace(S @ slope @ X @ slope.T) + 2 * jnp.trace(weighted @ weighted)


def belief_covariance(optimum: Optimum, plant: LQG) -> Array:
    """X of the stationary closed loop."""
    return solve_lyapunov(closed_loop_matrix(optimum, plant), optimum.L @ optimum.S @ optimum.L.T).X


@eqx.filter_jit
def _scales(systems: LQG, optima: Optimum) -> tuple[Array, Array, Array]:
    """Of every member: variance of a target, size of a belief, and what clipping leaves out by length."""

    def of_member(plant: LQG, optimum: Optimum) -> tuple[Array, Array, Array]:
        X = belief_covariance(optimum, plant)
        size = jnp.sqrt(jnp.trace(X))
        Abar, root = predictor_matrix(optimum, plant), jnp.linalg.cholesky(optimum.S)

        def left_out(seen: Array, _: None) -> tuple[Array, Array]:
            whitened = jax.scipy.linalg.solve_triangular(root, seen @ plant.A, lower=True)
            return seen @ Abar, jnp.linalg.norm(whitened, 2) * size

        _, decay = jax.lax.scan(left_out, plant.C @ Abar, length=MAX_LENGTH)
        return target_variance(optimum, plant, X), size, decay

    # One member after the other: their loops must not run at the same time (docs/decisions/0005).
    return jax.lax.map(lambda pair: of_member(*pair), (systems, optima))
