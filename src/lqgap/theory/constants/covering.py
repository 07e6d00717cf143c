"""The covering number of the value targets of a class: by formula, with explicit constants, and measured.

If matrices A, B, C change by at most eps (along a path on which the constants of the class hold),

    ||dSigma|| <= C_Sigma eps ,                 C_Sigma = 2 k^3 (1 - g) (1 + k) N_Sigma / (2 g - g^2)
    ||dS|| <= C_S eps ,                         C_S = 2 N_S N_Sigma + C_Sigma N_S^2
    ||dL|| <= C_L eps ,                         C_L = (C_Sigma N_S + N_Sigma + N_L C_S) / V_min
    ||d(I-LC)A||, ||d(I-LC)B|| <= C_A eps ,     C_A = 1 + C_L N_S^2 + 2 N_L N_S

where ||Abar^j|| <= k (1 - g)^j for the predictors Abar = A - FC, whatever kappa_2 and gamma_2 stand for. The
first holds because

    dSigma = Abar dSigma Abar' + (dA - F dC) Sigma Abar' + its transpose

and X -> X - Abar X Abar' has an inverse of norm at most k^2 / (2 g - g^2). So the clipped belief changes by
C_x eps,

    C_x = kappa_2 (C_A Ubar + C_L Ybar) / gamma_2
          + (kappa_2 / gamma_2)^2 C_A ((1 + N_L N_S) N_S Ubar + N_L Ybar)

as sum (s-1)(1-gamma)^{s-2} <= 1 / gamma^2, a prediction by C_m eps and f by C_f eps,

    C_m = 2 N_S ((1 + kappa_2) Xbar_2 + Ubar) + N_S^2 C_x
    C_f = 2 (N_L n_z v + N_U m) C_m + p (N_L^2 n_z + N_U) C_S

whence

    log N(F, 1/H) <= (n^2 + nm + np) log(1 + 2 sqrt(n) N_S C_f H)                  all matrices
    log N(F, 1/H) <= k log(1 + 2 radius C_t C_f H)         k parameters in a ball, Theta(t) C_t-Lipschitz
    log N(F, 1/H) <= log N                                 N members
"""

import math

import numpy as np
from jaxtyping import Float

from lqgap.simulators import Finite
from lqgap.systems import LQG
from lqgap.theory.constants.corrected import largest_prediction
from lqgap.theory.constants.norms import Norms


def sensitivities(norms: Norms, state: dict[str, float]) -> dict[str, float]:
    """C_Sigma, C_S, C_L, C_A, C_x, C_m and C_f: the largest change per change of the matrices."""
    N_S, N_L, N_Sigma, kappa, gamma = norms.N_S, norms.N_L, norms.N_Sigma, norms.kappa_2, norms.gamma_2
    Ubar, Ybar = state["Ubar"], state["Ybar"]
    slow, size = norms.gamma_predictor, norms.kappa_predictor
    C_Sigma = size**2 / (2 * slow - slow**2) * 2 * (1 + size) * N_Sigma * size * (1 - slow)
    C_S = 2 * N_S * N_Sigma + C_Sigma * N_S**2
    C_L = (C_Sigma * N_S + N_Sigma + N_L * C_S) * norms.V_inverse
    C_A = 1 + C_L * N_S**2 + 2 * N_L * N_S
    history = (1 + N_L * N_S) * N_S * Ubar + N_L * Ybar
    C_x = kappa * (C_A * Ubar + C_L * Ybar) / gamma + (kappa / gamma) ** 2 * C_A * history
    C_m = 2 * N_S * ((1 + kappa) * state["Xbar_2"] + Ubar) + N_S**2 * C_x
    n_z = norms.N_P + N_S**2 * norms.N_U
    m, v = largest_prediction(norms, state)
    C_f = 2 * (N_L * n_z * v + norms.N_U * m) * C_m + norms.num_outputs * (N_L**2 * n_z + norms.N_U) * C_S
    return {"C_Sigma": C_Sigma, "C_S": C_S, "C_L": C_L, "C_A": C_A, "C_x": C_x, "C_m": C_m, "C_f": C_f}


def log_cover_of_matrices(norms: Norms, C_f: float, *, horizon: float) -> float:
    """log N(F, 1/H) of all plants of this size and these norms."""
    n, m, p = norms.num_states, norms.num_inputs, norms.num_outputs
    return n * (n + m + p) * _log_one_plus(2 * math.sqrt(n) * norms.N_S, C_f, horizon)


def log_cover_of_parameters(members: Finite, C_f: float, *, horizon: float) -> float:
    """log N(F, 1/H) of plants that depend on the members' parameters, as smoothly as the members do.

    The Lipschitz constant is the largest ratio met between members, so the members should be a fine grid.
    """
    parameters = np.asarray(members.parameters)
    spread = np.ptp(parameters, axis=0)
    free = spread > 0
    scaled = parameters[:, free] / spread[free]
    count = scaled.shape[1]
    return count * _log_one_plus(math.sqrt(count) * parameter_slope(members.systems, scaled), C_f, horizon)


def parameter_slope(systems: LQG, parameters: np.ndarray) -> float:
    """The largest max(||dA||, ||dB||, ||dC||) per distance of parameters, between members."""
    first, second = np.triu_indices(len(parameters), k=1)
    distance = np.linalg.norm(parameters[first] - parameters[second], axis=1)
    first, second, distance = (pairs[distance > 0] for pairs in (first, second, distance))
    changes = [
        np.linalg.norm(X[first] - X[second], ord=2, axis=(1, 2))
        for X in map(np.asarray, (systems.A, systems.B, systems.C))
    ]
    return float(np.max(np.max(changes, axis=0) / distance, initial=0.0))


def measured_cover(values: Float[np.ndarray, "function sample"], *, radius: float) -> list[int]:
    """The numbers of functions such that every one is within the radius of one of them.

    They are also further than the radius from each other, so that no cover of half the radius is smaller.
    """
    uncovered, chosen = np.ones(len(values), dtype=bool), []
    while np.any(uncovered):
        index = int(np.argmax(uncovered))
        chosen.append(index)
        uncovered &= np.max(np.abs(values - values[index]), axis=1) > radius
    return chosen


def _log_one_plus(*factors: float) -> float:
    """log(1 + product), where the product may overflow."""
    return float(np.logaddexp(0, sum(math.log(factor) if factor > 0 else -math.inf for factor in factors)))
