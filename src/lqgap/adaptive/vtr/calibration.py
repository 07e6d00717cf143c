"""The constants of LQG-VTR, and scales for them that come from the class alone.

The constants of the theory are so large that the score never reaches one (`lqgap.theory.constants` has them).
Calibrated ones put the standard deviation of a target in the place of its largest value. Under member i's own
optimal controller the belief has covariance X = Acl X Acl' + L S L', Acl = A - BK, and a target the variance

    var_i = E Var(Y) = 4 tr(S G X G') + 2 tr((Phi S)^2) ,    G = (L' zeta + QC) Acl ,   Phi = L' zeta L + Q .

    psi = mean_i var_i ,        beta = 8 max_i var_i log(N / delta) ,
    length: the first l with  (tr E X E')^{1/2} <= 1e-3 , E = S^{-1/2} C Abar^l A ,  for all members,
    state_bound = 10 max_i (tr X)^{1/2}  in coordinates common to the class (`systems.natural`),
    max_switches = 1 + (N - 1) log2(1 + N H / (8 (N - 1)))

Samples that are weighted by 1 / Var have variance one: psi = 1, beta = 8 log(N / delta).
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.adaptive.vtr.mismatch import mismatch
from lqgap.arguments import FloatLike, IntLike, read_count, read_positive, read_probability
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import AbstractFamily, Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum, bias_matrix
from lqgap.systems.natural import common_coordinates
from lqgap.systems.optimum import belief_covariance, closed_loop_matrix
from lqgap.systems.window import MAX_LENGTH, clipping_errors
from lqgap.theory.constants.comparison import constants as theory_constants
from lqgap.theory.constants.corrected import episodes

CLIPPED = 1e-3  # of an innovation's standard deviation: what clipping the history may change
MAX_WARMUP = 2**62


Number = Any  # or an array of one, while an algorithm runs


class VTRConstants(eqx.Module):
    """What the procedure can be tuned by.

    Args:
        psi: the score's regulariser: how much evidence makes a switch.
        beta: the radius of the confidence set.
        length: of the clipped history.
        state_bound: M_x, the norm of a belief, in coordinates common to the class, beyond which the
            algorithm halts.
        num_warmup: steps of random inputs at the start.
        sigma_u: their standard deviation.
        max_switches: Kbar.
        delta: the probability with which the truth may leave a likelihood set, and with which a true class
            may be taken for refuted.
        resolution: how differently, in the root mean square, the member nearest to the truth predicts
            targets; 0 if the truth is a member.
        slack: how much larger its innovations are than it expects; 0 if the truth is a member.
    """

    psi: Number
    beta: Number
    length: int = eqx.field(static=True)
    state_bound: Number
    num_warmup: int = eqx.field(static=True, default=0)
    sigma_u: Number = 1.0
    max_switches: Number = 1_000_000
    delta: Number = 0.05
    resolution: Number = 0.0
    slack: Number = 0.0

    def __check_init__(self) -> None:
        for name in ("psi", "beta", "state_bound", "sigma_u"):
            read_positive(name, getattr(self, name))
        read_count("length", self.length, least=1)
        for name in ("resolution", "slack"):
            if not (isinstance(value := getattr(self, name), float | int) and 0 <= value < np.inf):
                raise InvalidArgumentError(f"{name} is {value!r}, expected a number that is not negative")
        read_probability("delta", self.delta)
        read_count("num_warmup", self.num_warmup, least=0, most=MAX_WARMUP)
        read_count("max_switches", self.max_switches, least=0, most=1_000_000)


def read_constants(
    constants: Any, members: Finite, *, horizon: int, weighting: str, family: AbstractFamily | None
) -> VTRConstants:
    """The constants that are meant."""
    if isinstance(constants, VTRConstants):
        return constants
    if constants == "calibrated":
        return calibrate(members, horizon=horizon, weighting=weighting, family=family)
    if constants == "theory":
        return theoretical(members, horizon=horizon)
    raise InvalidArgumentError(
        f"constants is {constants!r}, expected 'calibrated', 'theory' or VTRConstants(...)"
    )


def calibrate(
    members: Members,
    *,
    horizon: IntLike,
    delta: FloatLike = 0.05,
    weighting: str = "equal",
    family: AbstractFamily | None = None,
) -> VTRConstants:
    """Constants of the size of what the members' own controllers meet, without knowledge of the truth.

    Args:
        weighting: of the samples, "equal" or "variance".
        family: of which the members are a grid or a cover, if the truth may lie between them.
    """
    members = Finite.of(members)
    members = members.in_coordinates(common_coordinates(members.systems))
    horizon = read_count("horizon", horizon, least=1, most=100_000_000)
    delta = read_probability("delta", delta)
    optima = members.optima()
    variance, root_mean_square, decay = (np.asarray(part) for part in _scales(members.systems, optima))
    too_long = np.any(decay > CLIPPED, axis=0)
    if too_long[-1]:
        raise InvalidArgumentError(
            f"some member's filter remembers more than {MAX_LENGTH} steps: narrow the ranges of the family, "
            f"or give the constants in Python (VTRConstants)"
        )
    count = len(variance)
    variance = np.ones(1) if weighting == "variance" else variance
    resolution, slack = (0.0, 0.0) if family is None else mismatch(family, members, weighting=weighting)
    return VTRConstants(
        psi=float(np.mean(variance)),
        beta=8 * float(np.max(variance)) * math.log(max(count, 2) / delta),
        length=int(np.max(np.flatnonzero(too_long), initial=-1)) + 2,  # the first column is that of length 1
        state_bound=10 * float(np.max(root_mean_square)),
        max_switches=math.ceil(episodes(count, float(horizon))),
        delta=delta,
        resolution=resolution,
        slack=slack,
    )


def theoretical(members: Finite, *, horizon: int) -> VTRConstants:
    """The corrected constants of the theory, with the members' own norms."""
    sheet = theory_constants(members, horizon=float(max(horizon, 2)))
    column = sheet.columns["corrected, actual"]
    wanted = {name: column[name] for name in ("psi", "beta", "l", "Xbar_1", "T_w", "Kbar")}
    infinite = [name for name, value in wanted.items() if not math.isfinite(value)]
    if infinite:
        raise InvalidArgumentError(
            f"the theory has no finite {', '.join(infinite)} for this class: an assumption fails "
            f"(lqgap.check_assumptions says which); use calibrated constants"
        )
    return VTRConstants(
        psi=wanted["psi"],
        beta=wanted["beta"],
        length=math.ceil(wanted["l"]),
        state_bound=wanted["Xbar_1"],
        num_warmup=min(math.ceil(wanted["T_w"]), MAX_WARMUP),
        max_switches=min(math.ceil(wanted["Kbar"]), 1_000_000),
        delta=1 / max(horizon, 2),
    )


def foreseeable_warnings(constants: VTRConstants, *, horizon: int) -> tuple[str, ...]:
    """Warnings that follow from the constants alone."""
    if constants.num_warmup <= horizon:
        return ()
    return (
        f"the warm-up of {constants.num_warmup:.3g} steps does not end within {horizon}: every input is "
        f"random, no model is selected and nothing is learnt; the constants are vacuous at this horizon, use "
        f"calibrated ones",
    )


def target_variance(optimum: Optimum, plant: LQG, X: Array) -> Array:
    """E Var(Y) in the stationary closed loop, where the belief has covariance X."""
    zeta, L, S = bias_matrix(optimum, plant), optimum.L, optimum.S
    slope = (L.T @ zeta + plant.Q @ plant.C) @ closed_loop_matrix(optimum, plant)
    weighted = (L.T @ zeta @ L + plant.Q) @ S
    return 4 * jnp.trace(S @ slope @ X @ slope.T) + 2 * jnp.trace(weighted @ weighted)


@eqx.filter_jit
def _scales(systems: LQG, optima: Optimum) -> tuple[Array, Array, Array]:
    """Of every member: variance of a target, size of a belief, and what clipping leaves out by length."""

    def of_member(plant: LQG, optimum: Optimum) -> tuple[Array, Array, Array]:
        X = belief_covariance(optimum, plant)
        size = jnp.sqrt(jnp.trace(X))
        decay = clipping_errors(optimum, plant, lambda error: jnp.sqrt(jnp.trace(error @ X @ error.T)))
        return target_variance(optimum, plant, X), size, decay

    # One member after the other: their loops must not run at the same time (docs/decisions/0005).
    return jax.lax.map(lambda pair: of_member(*pair), (systems, optima))
