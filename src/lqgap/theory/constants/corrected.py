"""The corrected chain of constants, from the norms of a class to the length of the warm-up.

With tail = sqrt(d) + sqrt(2 log(4 (H+1) / delta)), which bounds all ||N(0, I_d)|| up to the horizon H:

    wbar = N_W^1/2 tail(n) ,   zbar = N_V^1/2 tail(p) ,   ebar = (N_S^2 N_Sigma + N_V)^1/2 tail(p)
    ubar = tail(m) ,           ybar = N_S growth (N_S ubar + wbar) + zbar                     (of the warm-up)
    reach(u, y) = kappa_2 [ (1 + N_L N_S) N_S u + (1 + gamma_2) N_L y ] / gamma_2       (bounds every belief)
    Xbar_1 = e max{ wbar growth, zbar, ubar / N_K, reach(ubar, ybar), 4 N_L ebar / (1 - gamma_1) }
    Ubar = N_K Xbar_1 ,   Ybar = max{ ybar, N_S^2 (Xbar_1 + Ubar) + ebar + (1 - gamma_1) Xbar_1 / (4 N_L) }
    Xbar_2 = reach(Ubar, Ybar)
    D = max{ n_z Xbar_2^2 + N_U Ybar^2 , sup f } ,    n_z = N_P + N_S^2 N_U

with m and v the largest clipped prediction of the next observation and the largest next belief,

    m = N_S^2 ((1 + kappa_2) Xbar_2 + Ubar) ,   v = N_L m + (1 + N_L N_S) N_S (Xbar_1 + Ubar)
    sup f = n_z v^2 + N_U m^2 + p N_Phi N_E ,   N_Phi = N_L^2 n_z + N_U ,   N_E = N_S^2 N_Sigma + N_V

what clipping the history costs,

    c(l) = N_S^2 kappa_2 (1 - gamma_2)^l Xbar_2
    Delta(l) = 2 c N_L n_z v + c^2 N_L^2 n_z + 2 c N_U m + N_U c^2
    l = min{ l : 4 Delta(l) D H <= 1 }

and the algorithm's own (N members; delta / 4 is spent on model selection),

    psi = 4 D^2 + 1 ,   beta = 8 (variance + scale D) log(4 N / (3 delta)) + 4 Delta D H
    Kbar = 1 + (N-1) log2(1 + N H / (8 (N-1)))

*The noise of a target* is quadratic in a Gaussian, neither bounded nor sub-Gaussian (E14). Given the past it
is Z = 2 b'e + e'Phi e - tr(Phi S), e ~ N(0, S), and its cumulants (`systems.value`) obey

    log E exp(s Z) <= s^2 Var Z / (2 (1 - 2 |s| ||S^1/2 Phi S^1/2||)) ,
    Var Z <= variance = 4 (N_L n_z v + N_U m)^2 N_E + 2 p scale^2 ,   ||S^1/2 Phi S^1/2|| <= scale = N_Phi N_E

as long as the beliefs *before* it are bounded, which the past decides: sums stop when they are not, so that
no event of the future is conditioned on. For functions f that differ by a_t <= D from the truth, the choice
s = 1 / (4 variance + 4 scale D) and Ville's inequality give, at all times with probability 1 - delta,

    2 sum a_t Z_t <= sum a_t^2 / 2 + 4 (variance + scale D) log(1 / delta) ,

from which beta follows. (Targets in [0, D] would have D^2 / 4 and 0 in place of variance and scale: then
beta = 2 D^2 log(4 N / (3 delta)) + 4 Delta D H.)

T_w is that of `warm_up`. C_w is an input.
"""

import math
from dataclasses import fields, replace

import numpy as np

from lqgap.theory.constants.norms import Norms
from lqgap.theory.constants.warm_up import (
    OF_ERRORS,
    OF_SWITCHES,
    decay_of_errors,
    warm_up,
    warm_up_of_errors,
)

OF_NORMS = ("N_S", "N_U", "N_K", "N_P", "N_Sigma", "N_L", "rho", "Phi", "gamma_1", "kappa_2", "gamma_2")
OF_STATES = ("Xbar_1", "Ubar", "Ybar", "Xbar_2", "D", "l", "Delta")
OF_TARGETS = ("variance", "scale")
OF_ALGORITHM = ("psi", "beta", "Kbar", "T_w")
OF_WARM_UP = ("kappa_3", "gamma_3", *OF_SWITCHES, *OF_ERRORS)
OTHER_FORMS = ("Kbar_pairs", "Kbar_eluder", "T_w_pairs", "T_w_eluder")


def corrected_constants(norms: Norms, *, horizon: float, delta: float, C_w: float) -> dict[str, float]:
    """The corrected chain of constants, from norms to T_w."""
    values = {name: getattr(norms, name) for name in OF_NORMS}
    if not norms.are_usable:
        names = (*OF_STATES, *OF_TARGETS, *OF_ALGORITHM, *OF_WARM_UP, *OTHER_FORMS)
        return values | dict.fromkeys(names, math.inf)
    norms = overflowing(norms)
    with np.errstate(over="ignore", invalid="ignore"):
        values |= state_constants(norms, horizon, delta)
        values["D"] = bias_bound(norms, values)
        values["l"] = shortest_history(norms, values, horizon)
        values["Delta"] = clipping_error(norms, values, values["l"])
        values["variance"], values["scale"] = target_noise(norms, values)
        D, N = values["D"], norms.num_members
        values["psi"] = 4 * D**2 + 1
        values["beta"] = confidence_radius(
            D,
            values["Delta"],
            variance=values["variance"],
            scale=values["scale"],
            horizon=horizon,
            log_count=math.log(N),
            delta=delta,
        )
        values["Kbar"] = episodes(N, horizon)
        values["Kbar_pairs"] = 1 + N * (N - 1) / 2 * math.log2(1 + 4 * D**2 * horizon / values["psi"])
        values["Kbar_eluder"] = (N - 1) * math.log(D * horizon) ** 2
        values["kappa_3"], values["gamma_3"] = decay_of_errors(norms)
        values |= _all_parts(norms, values["Kbar"], C_w)
        for form in ("", "_pairs", "_eluder"):
            values[f"T_w{form}"] = max(_all_parts(norms, values[f"Kbar{form}"], C_w).values())
    return {name: float(value) for name, value in values.items()}


def state_constants(norms: Norms, horizon: float, delta: float) -> dict[str, float]:
    """Xbar_1, Ubar, Ybar and Xbar_2, from the tails of the noise and what the warm-up leaves."""
    w = math.sqrt(norms.N_W) * tail(norms.num_states, horizon, delta)
    z = math.sqrt(norms.N_V) * tail(norms.num_outputs, horizon, delta)
    e, u = innovation_tail(norms, horizon, delta), tail(norms.num_inputs, horizon, delta)
    y = norms.N_S * norms.growth * (norms.N_S * u + w) + z
    contraction = 4 * norms.N_L * e / (1 - norms.gamma_1)
    X1 = math.e * max(w * norms.growth, z, u / norms.N_K, largest_belief(norms, u, y), contraction)
    return bounded_state(norms, Xbar_1=X1, innovation=e, least_output=y)


def tail(size: int, horizon: float, delta: float) -> float:
    """Bounds the norm of standard normal vectors of this size, of four kinds, at all steps 0..H."""
    return math.sqrt(size) + math.sqrt(2 * math.log(4 * (horizon + 1) / delta))


def innovation_tail(norms: Norms, horizon: float, delta: float) -> float:
    """ebar: bounds all innovations."""
    return math.sqrt(norms.N_S**2 * norms.N_Sigma + norms.N_V) * tail(norms.num_outputs, horizon, delta)


def bounded_state(
    norms: Norms, *, Xbar_1: float, innovation: float, least_output: float = 0.0
) -> dict[str, float]:
    """Xbar_1, Ubar, Ybar and Xbar_2."""
    Ubar = norms.N_K * Xbar_1
    Ybar = norms.N_S**2 * (Xbar_1 + Ubar) + innovation + (1 - norms.gamma_1) * Xbar_1 / (4 * norms.N_L)
    Ybar = max(Ybar, least_output)
    return {"Xbar_1": Xbar_1, "Ubar": Ubar, "Ybar": Ybar, "Xbar_2": largest_belief(norms, Ubar, Ybar)}


def largest_belief(norms: Norms, u: float, y: float) -> float:
    """Bounds the belief by any member after inputs and observations of norms up to u and y."""
    N_S, N_L, kappa, gamma = norms.N_S, norms.N_L, norms.kappa_2, norms.gamma_2
    return (kappa * (1 + N_L * N_S) * N_S * u + kappa * (1 + gamma) * N_L * y) / gamma


def bias_bound(norms: Norms, state: dict[str, float]) -> float:
    """D: bounds bias functions, value targets and their means."""
    n_z = norms.N_P + norms.N_S**2 * norms.N_U
    m, v = largest_prediction(norms, state)
    sup_f = n_z * v**2 + norms.N_U * m**2 + norms.num_outputs * _largest_square(norms)
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


def target_noise(norms: Norms, state: dict[str, float]) -> tuple[float, float]:
    """Bounds of the variance of a target given the past, and of its scale ||S^1/2 Phi S^1/2||."""
    n_z = norms.N_P + norms.N_S**2 * norms.N_U
    m, v = largest_prediction(norms, state)
    slope, scale = norms.N_L * n_z * v + norms.N_U * m, _largest_square(norms)
    innovation = norms.N_S**2 * norms.N_Sigma + norms.N_V
    return 4 * slope**2 * innovation + 2 * norms.num_outputs * scale**2, scale


def confidence_radius(
    D: float,
    Delta: float,
    *,
    variance: float,
    scale: float,
    horizon: float,
    log_count: float,
    delta: float,
) -> float:
    """beta of a finite class, or a cover, of exp(log_count) functions."""
    noise = 8 * (variance + scale * D) * (log_count + math.log(4 / (3 * delta)))
    return noise + 4 * Delta * D * horizon


def martingale_bound(variance: float, scale: float, *, horizon: float, delta: float) -> float:
    """Bernstein: a sum of the noise of so many targets is larger with probability delta at most."""
    log = math.log(1 / delta)
    return math.sqrt(2 * horizon * variance * log) + 2 * scale * log


def episodes(num_members: int, horizon: float) -> float:
    """Kbar with psi = 4 D^2 + 1: the determinant of the Gram matrix of f doubles at every switch."""
    free = num_members - 1
    return 1 + free * math.log2(1 + num_members * horizon / (8 * free)) if free else 1.0


def overflowing(norms: Norms) -> Norms:
    """The same in NumPy's numbers, whose powers overflow to infinity instead of raising."""
    real = {
        field.name: np.float64(getattr(norms, field.name)) for field in fields(norms) if field.type is float
    }
    return replace(norms, **real)


def _largest_square(norms: Norms) -> float:
    """N_Phi N_E: bounds S^1/2 Phi S^1/2."""
    n_z = norms.N_P + norms.N_S**2 * norms.N_U
    return (norms.N_L**2 * n_z + norms.N_U) * (norms.N_S**2 * norms.N_Sigma + norms.N_V)


def _all_parts(norms: Norms, Kbar: float, C_w: float) -> dict[str, float]:
    return warm_up(norms, Kbar=Kbar, C_w=C_w) | warm_up_of_errors(norms, Kbar=Kbar, C_w=C_w)
