"""The audit of a class: which assumptions of the theory hold, with what margin, and how to fix a failure.

Assumption 1: A is stable, its powers do not overshoot without bound, modes are controllable and observable.
Assumption 2: the closed loops A - BK contract, in one norm for all members; matrices are bounded.
Assumption 3: the predictors A - FC are strongly stable.

Each is judged as the paper prints it and as the corrected theory needs it. Norms depend on coordinates, which
the paper leaves open: a condition on norms holds if it does in some coordinates common to the class, and
margins are those of coordinates that the class itself gives (`systems.natural`). So no verdict depends on
units. The constants of the class do: they are those of the coordinates given; `repair` gives better ones.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from lqgap.simulators.audit.contraction import MAX_CONDITION, Contraction, find_contraction
from lqgap.simulators.audit.findings import Audit, Check
from lqgap.simulators.audit.measures import Measures, measure_members
from lqgap.simulators.audit.uninformative import find_uninformative
from lqgap.simulators.finite import Finite, Members, member_error
from lqgap.systems.natural import common_coordinates

MODE_TOLERANCE = 1e-8  # relative; below it a mode counts as uncontrollable or unobservable
GRAMIAN_TOLERANCE = 1e-15

NOTHING = "nothing needs to be done"
UNSTABLE = f"{NOTHING} for training; the paper's bounds do not hold"
NARROWER = "for the bounds, narrow the ranges (in a study, those of [plant])"


@np.errstate(over="ignore", invalid="ignore")  # what leaves double precision is infinite or NaN, and shown so
def check_assumptions(members: Members) -> Audit:
    """Audit a class: which assumptions hold, with what margin, limited by which member, and what to do."""
    members = Finite.of(members)
    T = np.asarray(common_coordinates(members.systems))
    natural = measure_members(members.in_coordinates(T))
    given = measure_members(members)
    contraction = _find_contraction(natural) if np.any(natural.has_optimum) else None
    checks = [
        _optimum(members, natural),
        _stable(natural),
        _transient(natural),
        _modes("(A, B) controllable", natural.controllability, natural.control_gramian),
        _modes("(A, C) observable", natural.observability, natural.observation_gramian),
        _controllable_gain(natural),
    ]
    if contraction is not None:
        checks += [_contraction(given, contraction), _bounded(given)]
        checks += [_predictor(natural), _noise(natural)]
        contraction = eqx.tree_at(lambda found: found.weight, contraction, T.T @ contraction.weight @ T)
    return Audit(
        members=members,
        measures=given,
        checks=tuple(checks),
        constants=_constants(given, contraction),
        contraction=contraction,
        uninformative=find_uninformative(members, np.flatnonzero(natural.has_optimum)),
    )


def _worst(values: Any, pick: Callable[[np.ndarray], np.intp]) -> tuple[float, int]:
    """The extreme value and its member; NaN (no optimum) is judged elsewhere."""
    if np.all(np.isnan(values)):
        return float("nan"), 0
    index = int(pick(values))
    return float(values[index]), index


def _find_contraction(measures: Measures) -> Contraction:
    usable = np.flatnonzero(measures.has_optimum)
    found = find_contraction(measures.closed_loop[usable])
    return eqx.tree_at(lambda contraction: contraction.member, found, int(usable[found.member]))


def _optimum(members: Finite, measures: Measures) -> Check:
    missing = np.flatnonzero(~measures.has_optimum)
    reason = str(member_error(members, int(missing[0]))) if len(missing) else ""
    return Check(
        assumption="-",
        statement="every member has a stationary optimum",
        as_printed=len(missing) == 0,
        repaired=len(missing) == 0,
        value=float(len(missing)),
        margin=-float(len(missing)),
        member=int(missing[0]) if len(missing) else 0,
        remedy=f"a study leaves these out, as members.subset(audit.measures.has_optimum) does; {reason}"
        if reason
        else "",
    )


def _stable(measures: Measures) -> Check:
    radius, member = _worst(measures.spectral_radius, np.nanargmax)
    return Check(
        assumption="A1",
        statement="open loop stable: rho(A) < 1",
        as_printed=radius < 1,
        repaired=radius < 1,
        value=radius,
        margin=1 - radius,
        member=member,
        remedy="" if radius < 1 else f"rho(A) = {radius:.4g} >= 1: {_without_bounds(measures)}",
    )


def _without_bounds(measures: Measures) -> str:
    has_stable = bool(np.any(measures.spectral_radius < 1))
    return f"{UNSTABLE}; {NARROWER}, or take audit.prune()" if has_stable else UNSTABLE


def _transient(measures: Measures) -> Check:
    growth, member = _worst(measures.transient_growth, np.nanargmax)
    is_bounded = bool(np.isfinite(growth))
    is_certified = bool(np.all(measures.open_loop.gamma > 0))
    kappa = float(np.max(measures.open_loop.kappa)) if is_certified else float("inf")
    bound = f"{NOTHING}: ||A^k|| <= {kappa:.3g} (1 - gamma)^k by the Lyapunov certificate"
    return Check(
        assumption="A1",
        statement="Phi(A) = sup ||A^k|| / rho(A)^k finite",
        as_printed=is_bounded,
        repaired=is_certified,
        value=growth,
        margin=float(np.min(measures.open_loop.gamma)) if is_certified else float("-inf"),
        member=member,
        remedy=("" if is_bounded else bound) if is_certified else _without_bounds(measures),
    )


def _modes(statement: str, values: np.ndarray, gramians: np.ndarray) -> Check:
    value, member = _worst(values, np.nanargmin)
    ratio, gramian_member = _worst(gramians, np.nanargmin)  # NaN where A is not stable
    holds = value > MODE_TOLERANCE and not ratio <= GRAMIAN_TOLERANCE
    note = f"; Gramian's smallest to largest eigenvalue at least {ratio:.1e}" if np.isfinite(ratio) else ""
    remedy = (
        f"{NOTHING}: stable modes that are not controllable or not observable (such as padded delay states) "
        f"do not affect the optimum"
    )
    return Check(
        assumption="A1",
        statement=statement + note,
        as_printed=holds,
        repaired=True,  # stabilisable and detectable suffice, and the first check has seen to that
        value=value,
        margin=value - MODE_TOLERANCE,
        member=member if value <= MODE_TOLERANCE or holds else gramian_member,
        remedy="" if holds else remedy,
    )


def _controllable_gain(measures: Measures) -> Check:
    value, member = _worst(measures.controllability_of_gain, np.nanargmin)
    needed, _ = _worst(measures.controllability_of_predictor, np.nanargmin)
    holds, suffices = value > MODE_TOLERANCE, needed > MODE_TOLERANCE
    need = f"identification needs (A - FC, [F, B]) controllable, which has the margin {needed:.2g}"
    return Check(
        assumption="A1",
        statement="(A, F) controllable; needed: (A - FC, [F, B])",
        as_printed=holds,
        repaired=suffices or holds,
        value=value,
        margin=needed - MODE_TOLERANCE,
        member=member,
        remedy="" if holds else f"{NOTHING}: {need}" if suffices else f"{need}; other methods do not need it",
    )


def _contraction(given: Measures, contraction: Contraction) -> Check:
    norm, _ = _worst(given.contraction, np.nanargmax)
    here = f"in the coordinates given {norm:.4g}"
    found = (
        f"{NOTHING}: {here}, and bounds use a common weighted norm of condition {contraction.condition:.3g}, "
        f"in which gamma_1 = {contraction.gamma:.4f}; audit.repair() is the class in its coordinates"
    )
    failed = (
        f"{UNSTABLE}: {here}, and no common weighted norm of condition below {MAX_CONDITION:g} was found in "
        f"which all closed loops contract (best {contraction.gamma:.4f}, limited by member "
        f"{contraction.member}); {NARROWER}"
    )
    remedy = "" if norm < 1 else found
    return Check(
        assumption="A2",
        statement="closed loops contract in some coordinates: ||A - BK|| <= gamma_1 < 1",
        as_printed=contraction.holds,
        repaired=contraction.holds,
        value=contraction.gamma,
        margin=1 - contraction.gamma,
        member=contraction.member,
        remedy=remedy if contraction.holds else failed,
    )


def _bounded(measures: Measures) -> Check:
    value, member = _worst(measures.norm_system, np.nanargmax)
    return Check(
        assumption="A2",
        statement="matrices and gains bounded: N_S, N_K finite",
        as_printed=True,
        repaired=True,
        value=value,
        margin=float("inf"),
        member=member,
        remedy="",
    )


def _predictor(measures: Measures) -> Check:
    gamma, member = _worst(measures.predictor.gamma, np.nanargmin)
    return Check(
        assumption="A3",
        statement="predictors strongly stable: A - FC (kappa_2, gamma_2)",
        as_printed=gamma > 0,
        repaired=gamma > 0,
        value=gamma,
        margin=gamma,
        member=member,
        remedy=""
        if gamma > 0
        else f"{UNSTABLE}: a filter mode is nearly marginal; a larger W makes it faster",
    )


def _noise(measures: Measures) -> Check:
    value, member = _worst(measures.noise_deviation, np.nanargmax)
    holds = value <= 1e-9
    return Check(
        assumption="-",
        statement="unit noise (W = S0 = I, V = I), in some units: W = S0 > 0 and V the same for all",
        as_printed=holds,
        repaired=True,
        value=value,
        margin=-value,
        member=member,
        remedy="" if holds else f"{NOTHING}: every formula here takes general noise",
    )


def _constants(measures: Measures, contraction: Contraction | None) -> dict[str, float]:
    """The class-wide constants: corrected uniform bounds, and the actual largest norms next to them."""

    def largest(values: Any) -> np.float64:  # whose powers may be infinite
        return np.float64(np.nanmax(values) if np.any(np.isfinite(values)) else np.nan)

    N_S, N_K, N_U = (largest(v) for v in (measures.norm_system, measures.norm_K, measures.norm_cost))
    gamma_1 = largest(measures.contraction)
    kappa_2 = max(largest(measures.predictor.kappa), largest(measures.norm_F))
    gamma_2 = 1 - largest(1 - measures.predictor.gamma)
    decay = 2 * gamma_2 - gamma_2**2
    noise = largest(measures.norm_W) + kappa_2**2 * largest(measures.norm_V)  # 1 + kappa_2^2 for unit noise
    N_Sigma = kappa_2**2 * noise / decay if decay > 0 else float("inf")
    constants = {
        "rho": largest(measures.spectral_radius),
        "Phi": float(np.nanmax(measures.transient_growth)),
        "N_S": N_S,
        "N_U": N_U,
        "N_K": N_K,
        "gamma_1": gamma_1,
        "gamma_1_weighted": contraction.gamma if contraction else float("nan"),
        "weight_condition": contraction.condition if contraction else float("nan"),
        "kappa_2": kappa_2,
        "gamma_2": gamma_2,
        "kappa_2_filter": largest(measures.filter.kappa),
        "gamma_2_filter": 1 - largest(1 - measures.filter.gamma),
        "N_P": N_U * (N_S**2 + N_K**2) / (1 - gamma_1**2) if gamma_1 < 1 else float("inf"),
        "N_Sigma": N_Sigma,
        "N_L": N_Sigma * N_S * largest(measures.norm_V_inverse),
        "norm_P": largest(measures.norm_P),
        "norm_Sigma": largest(measures.norm_Sigma),
        "norm_L": largest(measures.norm_L),
        "norm_F": largest(measures.norm_F),
    }
    return {name: float(value) for name, value in constants.items()}
