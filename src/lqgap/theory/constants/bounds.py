"""Bounds of regret and gap with constants in their places, and whether they say anything.

On the good event, T_w the warm-up, d the Eluder dimension of the class at 1/H and b = 8 beta + psi + 4 D^2,

    Regret(H) <= warm-up + [1 + min(d, H) D] + 2 (d b H)^1/2 + noise + 2 D Kbar + 2 Delta H

Derivation. The set contains the truth, so J of the model acted on is at most J*; by its Bellman equation

    c_t - J = h_t - f'_model(E_t) = [h_t - h_{t+1}] + [h_{t+1} - f'_truth] + [f'_truth - f'_model] .

  - The first telescopes over an episode to at most D, as 0 <= h <= D (2 D is allowed for).
  - The second is the noise of a target, sub-exponential given the past (`corrected`): by Bernstein's
    inequality at most noise = (2 H variance log(1/delta))^1/2 + 2 scale log(1/delta).
  - The third is at most |f_truth - f_model| + 2 Delta. Both are in the set of radius beta^1/2 around one
    estimate, so they are within 4 beta on the data of past episodes; those of the running one add at most
    as much and psi + 4 D^2, or the score would have ended it. If the squares seen so far never exceed b, at
    most (b / e^2 + 1) d samples have a difference above e (Russo and Van Roy), so the j-th largest is at
    most (b d / (j - d))^1/2: the sum is as above.
  - The witnesses are pairs with the truth, so that d = N - 1 serves for N members.

Off the good event (probability 4 delta at most) inputs are still bounded by Ubar, so that E c^2 <= q^2 for
the cost c of a step and, by Cauchy and Schwarz, a further (H+1) q (4 delta)^1/2. The warm-up costs what white
noise costs above J*. All of this was re-derived, not measured, and assumes C_w: with one that is not known to
hold, the default 1 say, figures show sizes and bound nothing. `warm_up.selection_constant` computes it. Last,

    Gap(robust training) <= max over members of the regret + max over members of D_H .
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from lqgap.arguments import FloatLike
from lqgap.files import finite_or_text
from lqgap.simulators import Finite, check_assumptions
from lqgap.theory.constants.comparison import read_arguments
from lqgap.theory.constants.corrected import corrected_constants, martingale_bound
from lqgap.theory.constants.norms import Norms, actual_norms, contracting, printed_norms, uniform_norms
from lqgap.theory.constants.openloop import OpenLoopCost, open_loop_cost
from lqgap.theory.constants.printed import printed_constants
from lqgap.theory.constants.sheet import Sheet
from lqgap.theory.constants.transient import printed_transient_bound, transients

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

MAX_HORIZON = 1e150


@dataclass(frozen=True)
class Bound:
    """One bound: its terms, their sum, and whether it is smaller than the gap of zero input."""

    name: str
    terms: dict[str, float]
    regret: float
    gap: float
    nothing: float  # the worst gap of zero input
    vacuous: bool
    useful_from: float  # the horizon from which on it is smaller; infinite if there is none


@dataclass(frozen=True)
class Bounds:
    """The bounds of a class at one horizon."""

    title: str
    bounds: tuple[Bound, ...]

    def __getitem__(self, name: str) -> Bound:
        return {bound.name: bound for bound in self.bounds}[name]

    def to_json(self) -> str:
        """All figures; what is infinite is text."""
        return json.dumps(finite_or_text(asdict(self)), indent=2)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        rows = {name: "a term of the regret" for bound in self.bounds for name in bound.terms} | {
            "regret": "the sum of the terms",
            "gap": "of robust training, from above",
            "nothing": "the worst gap of zero input: a bound above it is vacuous",
            "useful_from": "the horizon from which on it is smaller",
        }
        columns = {bound.name: {**bound.terms, **vars(bound)} for bound in self.bounds}
        return Sheet(self.title, columns, rows).__rich_console__(console, options)


def bounds(
    members: Finite, *, horizon: FloatLike, delta: FloatLike | None = None, C_w: FloatLike = 1.0
) -> Bounds:
    """Bounds of regret and of the gap of robust training, if C_w holds: printed, corrected, actual norms.

    Args:
        delta: the probability of failure; left out, 1 / horizon.
        C_w: assumed: T random inputs tell all matrices to (C_w / T)^1/2; see `selection_constant`.
    """
    given_delta = delta
    horizon, _, C_w = read_arguments(horizon, delta, C_w)
    given = check_assumptions(members)
    used = contracting(given)
    J = np.asarray(members.optima().J)
    nothing, noise = (open_loop_cost(members.systems, is_random=is_random) for is_random in (False, True))
    D_h = transients(used, horizon=horizon)

    def delta_at(H: float) -> float:
        return 1 / H if given_delta is None else float(given_delta)

    def worst_of_nothing(H: float) -> float:
        shift = D_h.at_horizon if horizon == H else D_h.limit
        return float(np.max(nothing(H) - (H + 1) * J + shift))

    def corrected(norms: Norms) -> Callable[[float], dict[str, float]]:
        return lambda H: regret_terms(norms, noise, J, horizon=H, delta=delta_at(H), C_w=C_w)

    uniform, printed = uniform_norms(used), printed_norms(uniform_norms(given, certificate="predictor"))
    shortfall = float(np.max(np.abs(D_h.at_horizon)))
    columns = {
        "printed": (
            lambda H: _printed_terms(printed, H, delta_at(H), C_w),
            printed_transient_bound(given, printed),
        ),
        "corrected": (corrected(uniform), shortfall),
        "actual norms": (corrected(actual_norms(uniform, used)), shortfall),
    }
    found = tuple(
        _judge(name, terms, shift, worst_of_nothing, horizon) for name, (terms, shift) in columns.items()
    )
    chosen = f"H = {horizon:g}, delta = {delta_at(horizon):.3g}, C_w = {C_w:g} (assumed)"
    title = f"Bounds for a class of {len(members)} members, {chosen}"
    return Bounds(title=title, bounds=found)


def regret_terms(
    norms: Norms, noise: OpenLoopCost, J: np.ndarray, *, horizon: float, delta: float, C_w: float
) -> dict[str, float]:
    """The terms of the regret bound."""
    values = corrected_constants(norms, horizon=horizon, delta=delta, C_w=C_w)
    if not norms.are_usable:
        return {"assumptions fail": math.inf}
    D, d = values["D"], norms.num_members - 1
    b = 8 * values["beta"] + values["psi"] + 4 * D * D
    T_w = float(math.floor(min(values["T_w"], horizon)))
    return {
        "warm-up": float(np.max(noise(T_w) - (T_w + 1) * J)),
        "counting": 1 + min(d, horizon) * D,
        "width": 2 * math.sqrt(d * b * horizon),
        "martingale": martingale_bound(values["variance"], values["scale"], horizon=horizon, delta=delta),
        "switches": 2 * D * values["Kbar"],
        "clipping": 2 * values["Delta"] * horizon,
        "failure": (horizon + 1) * math.sqrt(4 * delta) * root_mean_square_cost(norms, values["Ubar"]),
    }


def root_mean_square_cost(norms: Norms, Ubar: float) -> float:
    """q with E c^2 <= q^2 for a step after any inputs of norm up to Ubar, and unit white noise before them.

    y = g + r with Gaussian g of covariance trace s at most, ||r|| <= N_S^2 growth Ubar, E ||g||^4 <= 3 s^2.
    """
    s = norms.num_outputs * (norms.N_S**2 * norms.growth**2 * (norms.N_W + norms.N_S**2) + norms.N_V)
    k = 2 * (norms.N_S**2 * norms.growth * Ubar) ** 2 + Ubar**2
    return norms.N_U * math.sqrt(12 * s**2 + 4 * s * k + k**2)


def _printed_terms(norms: Norms, horizon: float, delta: float, C_w: float) -> dict[str, float]:
    """The theorem with its hidden constants 1: (delta_E H)^1/2."""
    D = printed_constants(norms, horizon=horizon, delta=delta, C_w=C_w)["D"]
    dimension, log_cover = max(norms.num_members - 1, 1), math.log(norms.num_members)
    return {"sqrt(delta_E H)": D * math.sqrt(dimension * log_cover * horizon)}


def _judge(
    name: str,
    terms: Callable[[float], dict[str, float]],
    shift: float,
    nothing: Callable[[float], float],
    horizon: float,
) -> Bound:
    def is_vacuous(H: float) -> bool:
        return not sum(terms(H).values()) + shift < nothing(H)

    found = terms(horizon)
    regret = sum(found.values())
    return Bound(
        name=name,
        terms=found,
        regret=regret,
        gap=regret + shift,
        nothing=nothing(horizon),
        vacuous=is_vacuous(horizon),
        useful_from=_last_change(is_vacuous),
    )


def _last_change(is_vacuous: Callable[[float], bool]) -> float:
    """The horizon beyond which nothing is vacuous: the last decade that is, then bisection."""
    exponents = np.arange(1.0, math.log10(MAX_HORIZON) + 1)
    vacuous = [is_vacuous(10.0**exponent) for exponent in exponents]
    if vacuous[-1]:
        return math.inf
    if not any(vacuous):
        return 10.0
    low = float(exponents[max(index for index, value in enumerate(vacuous) if value)])
    high = low + 1
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_vacuous(10.0**middle) else (low, middle)
    return 10.0**high
