"""The constants of the theory for a class, a horizon, delta and C_w: as printed, and corrected.

Norms are those of `norms`, the chain from them to T_w that of `corrected` and `printed` (whose hidden
constants are 1), and D_h, which bounds the difference between (H+1) J* and V*, that of `transient`.

C_w, how well random inputs identify the plant, is assumed (`selection_constant` has one). C_1, C_2 and C_R of
the paper are not needed: E23, tails written out, and the mean square of costs (`bounds`) replace them.
"""

from typing import Any

import numpy as np

from lqgap.arguments import FloatLike, read_positive, read_probability
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import Finite, check_assumptions
from lqgap.theory.constants.corrected import corrected_constants
from lqgap.theory.constants.norms import actual_norms, contracting, printed_norms, uniform_norms
from lqgap.theory.constants.printed import printed_constants
from lqgap.theory.constants.sheet import Sheet
from lqgap.theory.constants.transient import printed_transient_bound, transients

MEANING = {
    "N_S": "bound of ||A||, ||B||, ||C||",
    "N_U": "bound of ||Q||, ||R||",
    "N_K": "bound of ||K||",
    "N_P": "bound of ||P||",
    "N_Sigma": "bound of ||Sigma||",
    "N_L": "bound of ||L||",
    "rho": "largest spectral radius of A",
    "Phi": "sup ||A^k|| / rho^k",
    "gamma_1": "bound of ||A - BK||, in the coordinates of the column",
    "kappa_2": "strong stability of the filters",
    "gamma_2": "strong stability of the filters",
    "Xbar_1": "bound of the belief that is acted on; the threshold M_x",
    "Ubar": "bound of inputs",
    "Ybar": "bound of observations",
    "Xbar_2": "bound of the belief by any member",
    "D": "bound of bias functions and value targets",
    "l": "length of the clipped history",
    "Delta": "error of clipping at that length",
    "variance": "bound of the variance of a value target, given the past",
    "scale": "by how much its tail is heavier than a Gaussian one",
    "psi": "regulariser of the importance score",
    "beta": "squared radius of the confidence set",
    "Kbar": "bound of the number of episodes",
    "Kbar_pairs": "the same by counting pairs",
    "Kbar_eluder": "the same in the printed form, (N - 1) log^2(D H)",
    "T_w": "length of the warm-up, the largest of:",
    "T_w gain": "  so that L is known",
    "T_w input": "  so that L enters (I - LC) B well enough",
    "T_w output": "  so that B and C enter (I - LC) B well enough",
    "T_w filter": "  so that powers of (I - LC) A are known",
    "T_w loop": "  so that G_2 contracts",
    "T_w belief": "  so that the acted-on belief contracts",
    "T_w start": "  so that the first observation enters beliefs well enough",
    "T_w switch": "  so that errors are small after a switch; T_A', T_B'",
    "T_w predictor": "  so that G_0 decays; T_g0",
    "T_w error": "  so that the state feeds errors little; T_g1",
    "T_w noise": "  so that the accumulated noise does",
    "kappa_3": "strong stability of G_0 and G_2, by which errors decay",
    "gamma_3": "strong stability of G_0 and G_2, by which errors decay",
    "T_w_pairs": "T_w with Kbar_pairs",
    "T_w_eluder": "T_w with Kbar_eluder",
    "D_limit": "D_h, sharp: the limit of |(H+1) J* - V*|, largest over members",
    "D_horizon": "the same at this horizon",
    "D_h": "the explicit bound of it",
}


def constants(
    members: Finite,
    *,
    horizon: FloatLike,
    delta: FloatLike | None = None,
    C_w: FloatLike = 1.0,
    certificate: str = "filter",
) -> Sheet:
    """The constants in four columns: printed and corrected, with class-uniform and with actual norms.

    What a class does not satisfy is infinite. The corrected columns are in coordinates in which the closed
    loops contract, if the audit finds some and the given ones are not.

    Args:
        delta: the probability of failure; left out, 1 / horizon.
        C_w: how well random inputs identify the plant: all matrices to (C_w / T)^1/2 after T steps.
        certificate: whose decay kappa_2, gamma_2 of the corrected columns are: "filter", as the proofs need,
            or "predictor", as the paper has it.
    """
    horizon, delta, C_w = read_arguments(horizon, delta, C_w)
    given = check_assumptions(members)
    used = contracting(given)
    uniform = uniform_norms(used, certificate=certificate)
    printed = printed_norms(uniform_norms(given, certificate="predictor"))
    corrected = {"uniform": uniform, "actual": actual_norms(uniform, used)}
    as_printed = {"uniform": printed, "actual": actual_norms(printed, given)}
    D_h = transients(used, horizon=horizon)
    columns = {
        f"printed, {name}": {
            **printed_constants(norms, horizon=horizon, delta=delta, C_w=C_w),
            "D_h": printed_transient_bound(given, norms),
        }
        for name, norms in as_printed.items()
    } | {
        f"corrected, {name}": {
            **corrected_constants(norms, horizon=horizon, delta=delta, C_w=C_w),
            "D_limit": float(np.max(np.abs(D_h.limit))),
            "D_horizon": float(np.max(np.abs(D_h.at_horizon))),
            "D_h": float(np.max(D_h.bound)),
        }
        for name, norms in corrected.items()
    }
    chosen = f"H = {horizon:g}, delta = {delta:.3g}, C_w = {C_w:g} (assumed)"
    title = f"Constants of a class of {len(members)} members, {chosen}"
    return Sheet(title=title, columns=columns, meaning=MEANING)


def read_arguments(horizon: Any, delta: Any, C_w: Any) -> tuple[float, float, float]:
    """Horizon (also one beyond what can be run), delta (1 / horizon if left out) and C_w."""
    horizon = read_positive("horizon", horizon)
    if horizon < 2:
        raise InvalidArgumentError(f"horizon is {horizon:g}, expected at least 2")
    delta = 1 / horizon if delta is None else read_probability("delta", delta)
    return horizon, delta, read_positive("C_w", C_w)
