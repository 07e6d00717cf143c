"""The corrected chain of constants, from the norms of a class to the length of the warm-up.

With tail = sqrt(d) + sqrt(2 log(4 (H+1) / delta)), which bounds all ||N(0, I_d)|| up to the horizon H:

    wbar = N_W^1/2 tail(n) ,   zbar = N_V^1/2 tail(p) ,   ebar = (N_S^2 N_Sigma + N_V)^1/2 tail(p)
    Xbar_1 = e max{ wbar growth, zbar, 24 N_L N_S ebar / (1 - gamma_1) } ,   Ubar = N_K Xbar_1
    Ybar = N_S^2 (Xbar_1 + Ubar) + ebar + (1 - gamma_1) Xbar_1 / (4 N_L)
    Xbar_2 = kappa_2 [ (1 + N_L N_S) N_S Ubar + (1 + gamma_2) N_L Ybar ] / gamma_2
    D = max{ n_z Xbar_2^2 + N_U Ybar^2 , sup f } ,    n_z = N_P + N_S^2 N_U

with m and v the largest clipped prediction of the next observation and the largest next belief,

    m = N_S^2 ((1 + kappa_2) Xbar_2 + Ubar) ,   v = N_L m + (1 + N_L N_S) N_S (Xbar_1 + Ubar)
    sup f = n_z v^2 + N_U m^2 + p (N_L^2 n_z + N_U) (N_S^2 N_Sigma + N_V)

what clipping the history costs,

    c(l) = N_S^2 kappa_2 (1 - gamma_2)^l Xbar_2
    Delta(l) = 2 c N_L n_z v + c^2 N_L^2 n_z + 2 c N_U m + N_U c^2
    l = min{ l : 4 Delta(l) D H <= 1 }

and the algorithm's own (N members; delta / 4 is spent on model selection),

    psi = 4 D^2 + 1 ,   beta = 2 D^2 log(4 N / (3 delta)) + 4 Delta D H
    Kbar = 1 + (N-1) log2(1 + N H / (8 (N-1)))

T_w is the largest of the lengths at which models that agree to 2 (C_w / T_w)^1/2 keep all beliefs bounded.
The chain is that of the paper with its slips repaired; T_w has the parts that the proofs make explicit.
"""

import math
from dataclasses import fields, replace

import numpy as np

from lqgap.theory.constants.norms import Norms

OF_NORMS = ("N_S", "N_U", "N_K", "N_P", "N_Sigma", "N_L", "rho", "Phi", "gamma_1", "kappa_2", "gamma_2")
OF_STATES = ("Xbar_1", "Ubar", "Ybar", "Xbar_2", "D", "l", "Delta")
OF_ALGORITHM = ("psi", "beta", "Kbar", "T_w")
OF_WARM_UP = ("T_w gain", "T_w input", "T_w output", "T_w filter", "T_w loop", "T_w belief")
OTHER_FORMS = ("Kbar_pairs", "Kbar_eluder", "T_w_pairs", "T_w_eluder")


def corrected_constants(norms: Norms, *, horizon: float, delta: float, C_w: float) -> dict[str, float]:
    """The corrected chain of constants, from norms to T_w."""
    values = {name: getattr(norms, name) for name in OF_NORMS}
    if not norms.are_usable:
        names = (*OF_STATES, *OF_ALGORITHM, *OF_WARM_UP, *OTHER_FORMS)
        return values | dict.fromkeys(names, math.inf)
    norms = overflowing(norms)
    with np.errstate(over="ignore", invalid="ignore"):
        e = innovation_tail(norms, horizon, delta)
        X1 = math.e * max(
            math.sqrt(norms.N_W) * tail(norms.num_states, horizon, delta) * norms.growth,
            math.sqrt(norms.N_V) * tail(norms.num_outputs, horizon, delta),
            24 * norms.N_L * norms.N_S * e / (1 - norms.gamma_1),
        )
        values |= bounded_state(norms, Xbar_1=X1, innovation=e)
        values["D"] = bias_bound(norms, values)
        values["l"] = shortest_history(norms, values, horizon)
        values["Delta"] = clipping_error(norms, values, values["l"])
        D, N = values["D"], norms.num_members
        values["psi"] = 4 * D**2 + 1
        values["beta"] = confidence_radius(
            D, values["Delta"], horizon=horizon, log_count=math.log(N), delta=delta
        )
        values["Kbar"] = episodes(N, horizon)
        values["Kbar_pairs"] = 1 + N * (N - 1) / 2 * math.log2(1 + 4 * D**2 * horizon / values["psi"])
        values["Kbar_eluder"] = (N - 1) * math.log(D * horizon) ** 2
        parts = warm_up(norms, Kbar=values["Kbar"], C_w=C_w)
        values["T_w"] = max(parts.values())
        values |= parts
        for form in ("pairs", "eluder"):
            values[f"T_w_{form}"] = max(warm_up(norms, Kbar=values[f"Kbar_{form}"], C_w=C_w).values())
    return {name: float(value) for name, value in values.items()}


def tail(size: int, horizon: float, delta: float) -> float:
    """Bounds the norm of standard normal vectors of this size, of four kinds, at all steps 0..H."""
    return math.sqrt(size) + math.sqrt(2 * math.log(4 * (horizon + 1) / delta))


def innovation_tail(norms: Norms, horizon: float, delta: float) -> float:
    """ebar: bounds all innovations."""
    return math.sqrt(norms.N_S**2 * norms.N_Sigma + norms.N_V) * tail(norms.num_outputs, horizon, delta)


def bounded_state(norms: Norms, *, Xbar_1: float, innovation: float) -> dict[str, float]:
    """Xbar_1, Ubar, Ybar and Xbar_2."""
    N_S, N_L, kappa, gamma = norms.N_S, norms.N_L, norms.kappa_2, norms.gamma_2
    Ubar = norms.N_K * Xbar_1
    Ybar = N_S**2 * (Xbar_1 + Ubar) + innovation + (1 - norms.gamma_1) * Xbar_1 / (4 * N_L)
    Xbar_2 = (kappa * (1 + N_L * N_S) * N_S * Ubar + kappa * (1 + gamma) * N_L * Ybar) / gamma
    return {"Xbar_1": Xbar_1, "Ubar": Ubar, "Ybar": Ybar, "Xbar_2": Xbar_2}


def bias_bound(norms: Norms, state: dict[str, float]) -> float:
    """D: bounds bias functions, value targets and their means."""
    n_z = norms.N_P + norms.N_S**2 * norms.N_U
    m, v = largest_prediction(norms, state)
    S = norms.N_S**2 * norms.N_Sigma + norms.N_V
    sup_f = n_z * v**2 + norms.N_U * m**2 + norms.num_outputs * (norms.N_L**2 * n_z + norms.N_U) * S
    return max(n_z * state["Xbar_2"] ** 2 + norms.N_U * state["Ybar"] ** 2, sup_f)


def largest_prediction(norms: Norms, state: dict[str, float]) -> tuple[float, float]:
    """Bounds of a clipped prediction m of the next observation, and of the next belief v."""
    N_S, N_L, Ubar = norms.N_S, norms.N_L, state["Ubar"]
    m = N_S**2 * state["Xbar_2"] * (1 + norms.kappa_2) + N_S**2 * Ubar
    return m, N_L * m + (1 + N_L * N_S) * N_S * (state["Xbar_1"] + Ubar)


def clipping_error(norms: Norms, state: dict[str, float], length: float) -> float:
    """Delta(l): how far clipping the history to this length moves a value target's mean."""
    n_z = norms.N_P + norms.N_S**2 * norms.N_U
    m, v = largest_prediction(norms, state)
    c = norms.N_S**2 * norms.kappa_2 * (1 - norms.gamma_2) ** length * state["Xbar_2"]
    return 2 * c * norms.N_L * n_z * v + c**2 * norms.N_L**2 * n_z + 2 * c * norms.N_U * m + norms.N_U * c**2


def shortest_history(norms: Norms, state: dict[str, float], horizon: float) -> float:
    """l: the shortest length with 4 Delta(l) D H <= 1; bisection, as Delta falls with the length."""

    def is_enough(length: int) -> bool:
        return bool(4 * clipping_error(norms, state, float(length)) * state["D"] * horizon <= 1)

    if not math.isfinite(state["D"]):
        return math.inf
    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return float(high)


def confidence_radius(D: float, Delta: float, *, horizon: float, log_count: float, delta: float) -> float:
    """beta of a finite class, or a cover, of exp(log_count) functions."""
    return 2 * D**2 * (log_count + math.log(4 / (3 * delta))) + 4 * Delta * D * horizon


def episodes(num_members: int, horizon: float) -> float:
    """Kbar with psi = 4 D^2 + 1: the determinant of the Gram matrix of f doubles at every switch."""
    free = num_members - 1
    return 1 + free * math.log2(1 + num_members * horizon / (8 * free)) if free else 1.0


def warm_up(norms: Norms, *, Kbar: float, C_w: float) -> dict[str, float]:
    """The lower bounds of T_w that the proofs make explicit."""
    N_S, N_L, N_K, kappa, gamma = norms.N_S, norms.N_L, norms.N_K, norms.kappa_2, norms.gamma_2
    D_u, D_y = N_K, 1 + N_S + N_S**2 * N_K * norms.growth
    per_step = kappa * Kbar / gamma
    history = (N_S + N_S**2 * N_L) * D_u + N_L * D_y
    slack = 1 - norms.gamma_1
    roots = {
        "T_w gain": 12 * per_step * D_y,
        "T_w input": 36 * per_step * D_u * N_S**2,
        "T_w output": 36 * per_step * D_u * (1 + N_L * N_S),
        "T_w filter": 6 * Kbar * (kappa / gamma) ** 2 * (1 + 2 * N_L * N_S + N_S**2) * history,
        "T_w loop": 4 * (1 + N_K + N_S * N_K * N_L) / slack,
        "T_w belief": 4 * N_L * norms.gamma_1 / slack,
    }
    return {name: C_w * np.float64(root) ** 2 for name, root in roots.items()}


def overflowing(norms: Norms) -> Norms:
    """The same in NumPy's numbers, whose powers overflow to infinity instead of raising."""
    real = {
        field.name: np.float64(getattr(norms, field.name)) for field in fields(norms) if field.type is float
    }
    return replace(norms, **real)
