"""One step of a filter with a given gain, where components of the observation may be lost.

    e = y_t - C xhat_{t|t-1} ,   xhat_{t|t} = xhat_{t|t-1} + L e ,   xhat_{t+1|t} = A xhat_{t|t} + B u_t

With e ~ N(0, S) and s the components seen, the lost ones are filled by their conditional mean,

    e_lost = S_{lost,s} S_{s,s}^-1 e_s ,      log p = -1/2 [ e_s' S_{s,s}^-1 e_s + log det 2 pi S_{s,s} ] ,

so that a filter may go on with its gain: L e is then exactly the correction by the components seen.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lqgap.linalg.psd import log_det_psd, solve_psd, solve_unrolled

MAX_UNROLLED = 4  # outputs: compiling more takes longer than it saves


class Filtered(eqx.Module):
    """The belief after an observation, the innovation with lost components filled, and how likely it was."""

    xhat: Float[Array, " state"]
    innovation: Float[Array, " output"]
    log_density: Float[Array, ""]


class Filled(eqx.Module):
    """An innovation with its lost components filled; of those seen the log-density of zero, and e' S^-1 e."""

    innovation: Float[Array, " output"]
    peak: Float[Array, ""]
    distance: Float[Array, ""]

    @property
    def log_density(self) -> Array:
        """How likely those seen were."""
        return self.peak - 0.5 * self.distance


class InnovationLaw(eqx.Module):
    """N(0, S) with what its density needs: nothing is left to solve where nothing is lost."""

    S: Float[Array, "output output"]
    precision: Float[Array, "output output"]  # S^-1
    peak: Float[Array, ""]  # the log-density of a zero innovation


def innovation_law(S: Float[Array, "output output"]) -> InnovationLaw:
    """The law of innovations with this covariance."""
    return InnovationLaw(S, jnp.linalg.inv(S), -0.5 * (log_det_psd(S) + len(S) * math.log(2 * math.pi)))


def filter_step(
    A: Float[Array, "state state"],
    B: Float[Array, "state input"],
    C: Float[Array, "output state"],
    L: Float[Array, "state output"],
    S: Float[Array, "output output"] | InnovationLaw,
    xhat: Float[Array, " state"],
    u_last: Float[Array, " input"],
    y: Float[Array, " output"],
) -> Filtered:
    """xhat_{t|t} from xhat_{t-1|t-1}; at first xhat and u_last are zero, and so is the prediction."""
    return correct_by_gain(C, L, S, A @ xhat + B @ u_last, y)


def correct_by_gain(
    C: Float[Array, "output state"],
    L: Float[Array, "state output"],
    S: Float[Array, "output output"] | InnovationLaw,
    predicted: Float[Array, " state"],
    y: Float[Array, " output"],
) -> Filtered:
    """xhat_{t|t} from xhat_{t|t-1}; a lost component of y (NaN) is taken as expected from those seen."""
    innovation = y - C @ predicted
    if isinstance(S, InnovationLaw):
        filled = jax.lax.cond(
            jnp.any(jnp.isnan(y)),
            lambda: fill_lost(innovation, S.S),
            lambda: _unfilled(innovation, S),
        )
    else:
        filled = fill_lost(innovation, S)
    return Filtered(predicted + L @ filled.innovation, filled.innovation, filled.log_density)


def fill_innovation(
    innovation: Float[Array, "model output"], law: InnovationLaw, is_lost: Bool[Array, " output"]
) -> Filled:
    """Those of several models; where nothing is lost, nothing is solved."""
    return jax.lax.cond(
        jnp.any(is_lost),
        lambda: jax.vmap(fill_lost)(innovation, law.S),
        lambda: jax.vmap(_unfilled)(innovation, law),
    )


def complete(
    y: Float[Array, " output"], expected: Float[Array, " output"], S: Float[Array, "output output"]
) -> Float[Array, " output"]:
    """The observation with its lost components (NaN) as expected from those seen."""
    return expected + fill_lost(y - expected, S).innovation


def fill_lost(innovation: Float[Array, " output"], S: Float[Array, "output output"]) -> Filled:
    """The innovation with its lost components (NaN) filled by their conditional mean."""
    seen = ~jnp.isnan(innovation)
    known = jnp.where(seen, innovation, 0)
    if len(S) == 1:  # where S is that of many observations, its logarithm is too
        distance = known @ (known / S[0])
        peak = -0.5 * jnp.where(seen[0], jnp.log(2 * math.pi * S[0, 0]), 0)
        return Filled(known, peak, distance)
    masked = jnp.where(seen[:, None] & seen[None, :], S, jnp.eye(len(S), dtype=S.dtype))
    precision_times, log_det = solve_normal(masked, known)
    peak = -0.5 * (log_det + jnp.sum(seen).astype(S.dtype) * math.log(2 * math.pi))
    return Filled(jnp.where(seen, innovation, S @ precision_times), peak, known @ precision_times)


def solve_normal(
    S: Float[Array, "output output"], e: Float[Array, " output"]
) -> tuple[Float[Array, " output"], Float[Array, ""]]:
    """S^-1 e and log det S, without a call of LAPACK for few outputs."""
    if len(S) <= MAX_UNROLLED:
        return solve_unrolled(S, e)
    return solve_psd(S, e), log_det_psd(S)


def _unfilled(innovation: Array, law: InnovationLaw) -> Filled:
    return Filled(innovation, law.peak, innovation @ law.precision @ innovation)
