"""T_w, the length of the warm-up: models that agree to eps = 2 (C_w / T_w)^1/2 keep all beliefs bounded.

C_w is an input: how well random inputs identify the plant, which `selection_constant` computes for the
likelihood set of a finite class. Let D_0 bound the beliefs acted on so far, and

    D_u = N_K ,   D_y = 1 + N_S + N_S^2 N_K growth ,   xi = 1 + 2 N_L N_S + N_S^2   (||d (I-LC) A|| <= xi eps)

*Switches.* The beliefs of two members differ by at most eps Xi D_0 <= D_0 / Kbar,

    Xi = (kappa_2 / gamma_2) (D_y + xi D_u) + (kappa_2 / gamma_2)^2 xi [(N_S + N_S^2 N_L) D_u + N_L D_y]
         + kappa_2 D_y + (kappa_2^2 / gamma_2) xi N_L D_y

of which `gain`, `input`, `output`, `filter` and `start` are parts.

*Between switches.* The error Delta of the acted-on prediction obeys Delta+ = G_0 Delta + G_1 xhat + N e and
xhat+ = G_2 xhat + G_3 Delta + N' e (docs/errata.md, E22), where with kappa_p, gamma_p of the predictor A - FC

    ||G_0 - Abar|| <= eps N_K (1 + N_L N_S) ,  so ||G_0^k|| <= kappa_3 (1 - gamma_3)^k     `predictor` , T_g0
    ||G_2|| <= (1 + gamma_1) / 2 <= 1 - gamma_3                                            `loop` ,      T_g2
    kappa_3 = kappa_p ,   gamma_3 = min{ gamma_p / 2, (1 - gamma_1) / 2 }
    ||G_1|| <= eps g_1 ,   g_1 = (N_S + N_K) N_L + 1 + N_K ,   ||G_3|| <= N_S N_K (1 + N_L N_S)
    ||N|| <= eps (N_S + N_L (1 + N_K)) ,   ||N'|| <= N_L N_S (1 + N_K)

N is small since it is a *difference* of models: so is the accumulated noise etilde = sum G_0^j N e. With
theta = (1 - gamma_1) / (4 N_L N_S) and ||e|| <= ebar <= (1 - gamma_1) D_0 / (4 N_L), by induction
||Delta|| <= theta D_0: a half is left to the first error, a third to the state, a sixth to the noise,

    kappa_3 eps [2 (1 + N_K) + N_S Xi]                       <= theta / 2          `switch` ,  T_A', T_B'
    (kappa_3 / gamma_3) eps g_1 X                            <= theta / 3          `error` ,   T_g1
    (kappa_3 / gamma_3) eps (N_S + N_L (1 + N_K)) ebar / D_0 <= theta / 6          `noise`
    X = (5/2) N_S (1 + N_K) + theta + N_S N_K (1 + N_L N_S) theta / gamma_3        (bounds ||xhat|| / D_0)

and the belief contracts if gamma_1 (1 + N_L eps) <= (1 + gamma_1) / 2: `belief`, T_M.
"""

import equinox as eqx
import numpy as np

from lqgap.arguments import read_probability
from lqgap.simulators import Finite
from lqgap.systems.separation import separate
from lqgap.theory.constants.norms import Norms

OF_SWITCHES = ("T_w gain", "T_w input", "T_w output", "T_w filter", "T_w loop", "T_w belief")
OF_ERRORS = ("T_w start", "T_w switch", "T_w predictor", "T_w error", "T_w noise")


def warm_up(norms: Norms, *, Kbar: float, C_w: float) -> dict[str, float]:
    """The parts of T_w that the paper makes explicit, corrected."""
    N_S, N_L, N_K, kappa, gamma = norms.N_S, norms.N_L, norms.N_K, norms.kappa_2, norms.gamma_2
    D_u, D_y = N_K, largest_output(norms)
    per_step = kappa * Kbar / gamma
    slack = 1 - norms.gamma_1
    roots = {
        "T_w gain": 12 * per_step * D_y,
        "T_w input": 36 * per_step * D_u * N_S**2,
        "T_w output": 36 * per_step * D_u * (1 + N_L * N_S),
        "T_w filter": 6 * Kbar * (kappa / gamma) ** 2 * filter_change(norms) * _history(norms),
        "T_w loop": 4 * (1 + N_K + N_S * N_K * N_L) / slack,
        "T_w belief": 4 * N_L * norms.gamma_1 / slack,
    }
    return _lengths(roots, C_w)


def warm_up_of_errors(norms: Norms, *, Kbar: float, C_w: float) -> dict[str, float]:
    """The parts of T_w that the paper leaves to constants without a name."""
    N_S, N_L, N_K = norms.N_S, norms.N_L, norms.N_K
    kappa, gamma = decay_of_errors(norms)
    slack = 1 - norms.gamma_1
    theta, filtered = slack / (4 * N_L * N_S), 1 + N_L * N_S
    state = 2.5 * N_S * (1 + N_K) + theta + N_S * N_K * filtered * theta / gamma
    of_state = (N_S + N_K) * N_L + 1 + N_K
    of_noise = (N_S + N_L * (1 + N_K)) * slack / (4 * N_L)
    start = norms.kappa_2**2 / norms.gamma_2 * filter_change(norms) * N_L * largest_output(norms)
    roots = {
        "T_w start": 12 * Kbar * start,
        "T_w switch": 4 * kappa * (2 * (1 + N_K) + N_S * belief_change(norms)) / theta,
        "T_w predictor": 4 * norms.kappa_predictor * N_K * filtered / norms.gamma_predictor,
        "T_w error": max(2.0, 6 * kappa / gamma * of_state * state / theta),  # 2: so that eps <= 1
        "T_w noise": 12 * kappa / gamma * of_noise / theta,
    }
    return _lengths(roots, C_w)


def selection_constant(members: Finite, *, delta: float) -> float:
    """C_w of the likelihood set: after T steps of unit white inputs, those left are off by (C_w / T)^1/2.

    Under the true member i, the logarithm of its likelihood over that of a near member j is N(T D, 2 T D) for
    large T, D their relative entropy a step. Member j is left only while it is below a = log(N / delta)
    (`simulators.likelihood`), which from T = 6 a / D on has the probability exp(-a) = delta / N at most:

        C_w = max over pairs of  6 a ||difference of A, B, C or L||^2 / D .
    """
    optima, a = members.optima(), np.log(len(members) / read_probability("delta", delta))
    silent = eqx.tree_at(lambda optima: optima.K, optima, 0 * optima.K)
    found = separate(members.systems, silent, colour=0j)  # the probe is the input
    entropy = found.information[0] + np.trace(found.gain[0], axis1=-2, axis2=-1)
    matrices = [np.asarray(X) for X in (*(getattr(members.systems, name) for name in "ABC"), optima.L)]
    apart = np.max([np.linalg.norm(X[:, None] - X, 2, axis=(-2, -1)) for X in matrices], axis=0)
    return float(6 * a * np.max(apart**2 / np.maximum(entropy, np.finfo(float).tiny)))


def decay_of_errors(norms: Norms) -> tuple[float, float]:
    """kappa_3 and gamma_3, of powers of G_0 and G_2."""
    return norms.kappa_predictor, min(norms.gamma_predictor / 2, (1 - norms.gamma_1) / 2)


def belief_change(norms: Norms) -> float:
    """Xi: how far the beliefs of two members are apart, for each unit of their distance and of D_0."""
    ratio, xi, D_y = norms.kappa_2 / norms.gamma_2, filter_change(norms), largest_output(norms)
    first = norms.kappa_2 * D_y + norms.kappa_2 * ratio * xi * norms.N_L * D_y
    return ratio * (D_y + xi * norms.N_K) + ratio**2 * xi * _history(norms) + first


def filter_change(norms: Norms) -> float:
    """xi: how far (I - LC) A and (I - LC) B of two members are apart, for each unit of their distance."""
    return 1 + 2 * norms.N_L * norms.N_S + norms.N_S**2


def largest_output(norms: Norms) -> float:
    """D_y: observations are at most this many times the bound of the beliefs acted on."""
    return 1 + norms.N_S + norms.N_S**2 * norms.N_K * norms.growth


def _history(norms: Norms) -> float:
    return (norms.N_S + norms.N_S**2 * norms.N_L) * norms.N_K + norms.N_L * largest_output(norms)


def _lengths(roots: dict[str, float], C_w: float) -> dict[str, float]:
    return {name: C_w * np.float64(root) ** 2 for name, root in roots.items()}
