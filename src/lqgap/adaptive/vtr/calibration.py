"""The constants of LQG-VTR, and scales for them that come from the class alone.

The constants of the theory are so large that the score never reaches one (`lqgap.theory.constants` has them).
Calibrated ones put the standard deviation of a target in the place of its largest value. Samples that are
weighted by one over their variance have variance one in every loop:

    psi = 1 ,     beta = 8 log(N / delta) ;

of equal weight, they have that of the members' own loops, where the belief has covariance X, and the sets
hold the truth less often in a loop with the controller of another member:

    X = Acl X Acl' + L S L' ,     Acl = A - BK ,
    var_i = E Var(Y) = 4 tr(S G X G') + 2 tr((Phi S)^2) ,    G = (L' zeta + QC) Acl ,   Phi = L' zeta L + Q .
    psi = mean_i var_i ,        beta = 8 max_i var_i log(N / delta) .

    length: the first l with  (tr E X E')^{1/2} <= 1e-3 , E = S^{-1/2} C Abar^l A ,  for all members,
    state_bound = 10 max_i max_t (tr X_t)^{1/2}  in coordinates common to the class (`systems.natural`), with
    X_{t+1} = Acl X_t Acl' + L_{t+1} S_{t+1} L_{t+1}' from the first observation on, L_0 S_0 L_0'.

Nothing bounds the number of switches. Likelihood sets need none of these, only delta.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.adaptive.vtr.options import VTROptions
from lqgap.adaptive.vtr.selection import ModelSelection
from lqgap.arguments import FloatLike, read_count, read_positive, read_probability
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum, bias_matrix
from lqgap.systems.kalman import plan_filter
from lqgap.systems.natural import common_coordinates
from lqgap.systems.optimum import belief_covariance, closed_loop_matrix
from lqgap.systems.window import MAX_LENGTH, clipping_errors
from lqgap.theory.constants.comparison import constants as theory_constants

CLIPPED = 1e-3  # of an innovation's standard deviation: what clipping the history may change
MAX_WARMUP = 2**62
NUM_FIRST = 256  # steps in which the transient of a first state far off is looked for


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
        C_w: of Algorithm 2, whose set has the radius (C_w / num_warmup)^1/2.
        delta: the probability with which the truth may ever leave a likelihood set.
    """

    psi: Number = 1.0
    beta: Number = 1.0
    length: int = eqx.field(static=True, default=1)
    state_bound: Number = 1e30
    num_warmup: int = eqx.field(static=True, default=0)
    sigma_u: Number = 1.0
    max_switches: Number = 1_000_000
    C_w: Number = 1.0
    delta: Number = 0.05

    def __check_init__(self) -> None:
        for name in ("psi", "beta", "state_bound", "sigma_u", "C_w"):
            read_positive(name, getattr(self, name))
        read_count("length", self.length, least=1)
        read_probability("delta", self.delta)
        read_count("num_warmup", self.num_warmup, least=0, most=MAX_WARMUP)
        read_count("max_switches", self.max_switches, least=0, most=1_000_000)


def read_constants(
    constants: Any,
    members: Finite,
    *,
    horizon: int | None,
    options: VTROptions,
) -> VTRConstants:
    """The constants that are meant."""
    if isinstance(constants, VTRConstants):
        return constants
    if isinstance(constants, str) and constants == "calibrated":
        return calibrate(members, options=options, delta=confidence(options, horizon))
    if isinstance(constants, str) and constants == "theory":
        return theoretical(members, horizon=horizon)
    raise InvalidArgumentError(
        f"constants is {constants!r}, expected 'calibrated', 'theory' or VTRConstants(...)"
    )


def calibrate(
    members: Members,
    *,
    delta: FloatLike = 0.05,
    options: VTROptions | None = None,
) -> VTRConstants:
    """Constants of the size of what the members' own controllers meet, without knowledge of the truth."""
    members, options = Finite.of(members), options or VTROptions()
    delta, weighting = read_probability("delta", delta), options.weighting
    members = members.in_coordinates(common_coordinates(members.systems))
    if options.confidence == "likelihood" and not options.alarm.startswith("ball"):
        return VTRConstants(delta=delta)
    variance, size, decay = (np.asarray(part) for part in _scales(members.systems, members.optima()))
    too_long = np.any(decay > CLIPPED, axis=0)
    if too_long[-1]:
        raise InvalidArgumentError(
            f"some member's filter remembers more than {MAX_LENGTH} steps: narrow the ranges of the family, "
            f"or give the constants in Python (VTRConstants)"
        )
    count, length = len(variance), int(np.max(np.flatnonzero(too_long), initial=-1)) + 2
    warm_up: dict[str, Any] = {}
    if options.selection != "likelihood":
        systems, optima = members.systems, members.optima()
        effort = np.mean(np.trace(np.asarray(optima.M), axis1=1, axis2=2))
        warm_up["sigma_u"] = sigma_u = float(np.sqrt(np.mean(optima.J) / effort))
        selection = ModelSelection(systems, optima, kind=options.selection, length=length)
        warm_up["num_warmup"], warm_up["C_w"], largest = selection.calibrate(systems, optima, sigma_u)
        size = np.append(size, largest)
    variance = np.ones(1) if weighting == "variance" else variance
    return VTRConstants(
        psi=float(np.mean(variance)),
        beta=8 * float(np.max(variance)) * math.log(max(count, 2) / delta),
        length=length,  # the first column is that of length 1
        state_bound=10 * float(np.max(size)),
        delta=delta,
        **warm_up,
    )


def confidence(options: VTROptions, horizon: int | None) -> float:
    """Delta, if none is given: as in the paper one over the horizon, where there is one."""
    return 1 / max(horizon, 2) if options.selection != "likelihood" and horizon else 0.05


def theoretical(members: Finite, *, horizon: int | None) -> VTRConstants:
    """The corrected constants of the theory, with the members' own norms."""
    if horizon is None:
        raise InvalidArgumentError("horizon is missing: the constants of the theory depend on it")
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
        max_switches=min(math.ceil(wanted["Kbar"]) - 1, 1_000_000),  # episodes k < Kbar, from one on
        delta=1 / max(horizon, 2),
    )


def foreseeable_warnings(constants: VTRConstants, *, horizon: int | None) -> tuple[str, ...]:
    """Warnings that follow from the constants alone."""
    if horizon is None or constants.num_warmup <= horizon:
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
        decay = clipping_errors(optimum, plant, lambda error: jnp.sqrt(jnp.trace(error @ X @ error.T)))
        size = jnp.sqrt(jnp.maximum(jnp.trace(X), _largest_at_first(plant, optimum)))
        return target_variance(optimum, plant, X), size, decay

    # One member after the other: their loops must not run at the same time (docs/decisions/0005).
    return jax.lax.map(lambda pair: of_member(*pair), (systems, optima))


def _largest_at_first(plant: LQG, optimum: Optimum) -> Array:
    """max_t tr X_t while the filter settles: a state that is far off at first makes large beliefs."""
    plan = plan_filter(plant, num_steps=NUM_FIRST)
    closed_loop = closed_loop_matrix(optimum, plant)

    def step(X: Array, gain: tuple[Array, Array]) -> tuple[Array, Array]:
        L, S = gain
        X = closed_loop @ X @ closed_loop.T + L @ S @ L.T
        return X, jnp.trace(X)

    return jnp.max(jax.lax.scan(step, jnp.zeros_like(plant.A), (plan.L, plan.S))[1])
