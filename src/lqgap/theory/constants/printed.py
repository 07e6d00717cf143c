"""The same chain of constants as the paper prints it; what hides behind its O(.) is set to 1.

    wbar = (n log H)^1/2 ,   ebar = (N_S N_Sigma + 1)(n log H)^1/2 ,   etilde = (p log H)^1/2
    Xbar_1 = e max{ wbar Phi / (1 - rho), 24 N_L N_S etilde / (1 - gamma_1), 4 N_L ebar / (1 - gamma_1) }
    l = log(H n + H p) ,   Kbar = dim_E log^2(D H) ,   psi = 4 D^2 + 1
    beta = 2 D^2 log(2 N) + 4 Delta D H + 4 (D + Delta) + 4 D (2 log(4 H (H+1) / delta))^1/2
    T_g2 = 36 C_w (N_S N_K N_L / (1 - gamma_1))^2 ,   T_M = 4 C_w / (1 - gamma_1)^2

with dim_E = N - 1 for N members and the factor C_1 = max_t t (1 - gamma_2)^{t-1} in the third part of T_w.
docs/errata.md says what is wrong with each.
"""

import math

import numpy as np

from lqgap.theory.constants.corrected import (
    OF_ALGORITHM,
    OF_NORMS,
    OF_STATES,
    bias_bound,
    bounded_state,
    clipping_error,
    overflowing,
)
from lqgap.theory.constants.norms import Norms
from lqgap.theory.constants.warm_up import OF_SWITCHES, warm_up


def printed_constants(norms: Norms, *, horizon: float, delta: float, C_w: float) -> dict[str, float]:
    """The printed chain; infinite where its assumptions fail."""
    values = {name: getattr(norms, name) for name in OF_NORMS}
    if not norms.are_usable:
        return values | dict.fromkeys((*OF_STATES, *OF_ALGORITHM, *OF_SWITCHES), math.inf)
    norms = overflowing(norms)
    with np.errstate(over="ignore", invalid="ignore"):
        by_states = math.sqrt(norms.num_states * math.log(horizon))
        by_outputs = math.sqrt(norms.num_outputs * math.log(horizon))
        innovation, slack = (norms.N_S * norms.N_Sigma + 1) * by_states, 1 - norms.gamma_1
        X1 = math.e * max(
            by_states * norms.growth,
            24 * norms.N_L * norms.N_S * by_outputs / slack,
            4 * norms.N_L * innovation / slack,
        )
        values |= bounded_state(norms, Xbar_1=X1, innovation=innovation)
        values["D"] = bias_bound(norms, values)
        values["l"] = float(math.ceil(math.log(horizon * (norms.num_states + norms.num_outputs))))
        values["Delta"] = clipping_error(norms, values, values["l"])
        D, Delta, N = values["D"], values["Delta"], norms.num_members
        values["psi"] = 4 * D**2 + 1
        values["beta"] = printed_radius(D, Delta, horizon=horizon, log_count=math.log(N), delta=delta)
        values["Kbar"] = max(N - 1, 1) * math.log(D * horizon) ** 2
        parts = _printed_warm_up(norms, Kbar=values["Kbar"], C_w=C_w)
        values["T_w"] = max(parts.values())
        values |= parts
    return {name: float(value) for name, value in values.items()}


def printed_radius(D: float, Delta: float, *, horizon: float, log_count: float, delta: float) -> float:
    """beta as printed: its first logarithm has lost delta."""
    return (
        2 * D**2 * (math.log(2) + log_count)
        + 4 * Delta * D * horizon
        + 4 * (D + Delta)
        + 4 * D * math.sqrt(2 * math.log(4 * horizon * (horizon + 1) / delta))
    )


def _printed_warm_up(norms: Norms, *, Kbar: float, C_w: float) -> dict[str, float]:
    decay, slack = 1 - norms.gamma_2, 1 - norms.gamma_1
    # t decay^(t-1) is largest next to t = -1 / log decay.
    top = max(math.floor(-1 / math.log(decay)), 1) if decay > 0 else 1
    C_1 = max(t * decay ** (t - 1) for t in (top, top + 1))
    parts = warm_up(norms, Kbar=Kbar, C_w=C_w)
    return parts | {
        "T_w filter": parts["T_w filter"] * C_1**2,
        "T_w loop": 36 * C_w * (norms.N_S * norms.N_K * norms.N_L / slack) ** 2,
        "T_w belief": 4 * C_w / slack**2,
    }
