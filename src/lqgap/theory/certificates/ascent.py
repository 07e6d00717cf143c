"""The largest gap over the plants of a family that a log does not refute, by local models of both.

Around a point z of the unit box let l be the log-likelihood, with slope s and information F = sum of the
squared slopes of the misfit, and G the gap, with slope g. As far as l is quadratic and G linear, the points
with l >= least are an ellipsoid, and G is largest on its surface:

    z + F^-1 s + r F^-1 g / (g'F^-1 g)^1/2 ,      r^2 = 2 (l - least) + s'F^-1 s ;

where r^2 < 0 the log refutes all points of the model, and z + F^-1 s leads to where it fits best. Coordinates
that a step would carry out of the box stay where they are. A step is taken if it leads to a larger gap that
is not refuted or, from a refuted point, to a larger likelihood; if not, a shorter one is tried. The answer is
reached by a plant of the family, and so is never above the true maximum. Starts on all sides of the set guard
against maxima that are only local; nothing proves that there is no other.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from lqgap.batches import take

NUM_STEPS = 25
LONGEST = 0.25  # step, in units of the box
SHORTEST = 1e-4
TOLERANCE = 1e-4  # a smaller gain is the last
RIDGE = 1e-9


class Local(eqx.Module):
    """Log-likelihood and gap at some points, with their slopes and the information."""

    log_likelihood: Float[np.ndarray, " point"]
    gap: Float[np.ndarray, " point"]
    slope: Float[np.ndarray, "point parameter"]
    gap_slope: Float[np.ndarray, "point parameter"]
    information: Float[np.ndarray, "point parameter parameter"]


def climb(
    local: Callable[[Float[np.ndarray, "point parameter"], Int[np.ndarray, " point"]], Local],
    starts: Float[np.ndarray, "point parameter"],
    pushes: Float[np.ndarray, "point parameter"],
    *,
    least: Float[np.ndarray, " point"],
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point parameter"]]:
    """The largest unrefuted gap reached from every start, and where; -inf where only refuted points were met.

    Args:
        local: of points and of the numbers of the starts they came from.
        pushes: directions of the first step within the set, instead of the slope of the gap; zero for none.
        least: the log-likelihood below which a point is refuted.
    """
    z = starts.copy()
    here = local(z, np.arange(len(z)))
    length, is_pushed = np.full(len(z), LONGEST), np.any(pushes, axis=1)
    active = np.arange(len(z))
    for _ in range(NUM_STEPS):
        was, least_now, pushed = take(here, active), least[active], is_pushed[active]
        direction = np.where(pushed[:, None], pushes[active], was.gap_slope)
        step = np.nan_to_num(ellipsoid_step(z[active], was, direction, least_now))  # beyond precision: stay
        size = np.maximum(np.max(np.abs(step), axis=1), 1e-300)
        proposed = np.clip(z[active] + step * np.minimum(1, length[active] / size)[:, None], 0, 1)
        now = local(proposed, active)
        was_allowed, is_allowed = was.log_likelihood >= least_now, now.log_likelihood >= least_now
        nearer = ~was_allowed & (now.log_likelihood > was.log_likelihood)
        # A push may lower the gap: what is on the other side is seen from there only.
        higher = was_allowed & is_allowed & ((now.gap > was.gap) | pushed)
        taken = nearer | higher
        is_done = higher & ~pushed & (now.gap <= (1 + TOLERANCE) * was.gap)
        is_pushed[active] = pushed & ~higher
        z[active[taken]] = proposed[taken]
        for old, new in zip(jax.tree.leaves(here), jax.tree.leaves(now), strict=True):
            old[active[taken]] = new[taken]
        length[active] = np.where(
            taken, np.minimum(2 * length[active], LONGEST), 0.4 * np.minimum(length[active], size)
        )
        active = active[~is_done & (length[active] >= SHORTEST)]
        if len(active) == 0:
            break
    return np.where(here.log_likelihood >= least, here.gap, -np.inf), z


def ellipsoid_step(
    z: Float[np.ndarray, "point parameter"],
    here: Local,
    direction: Float[np.ndarray, "point parameter"],
    least: Float[np.ndarray, " point"],
) -> Float[np.ndarray, "point parameter"]:
    """To where the local model is largest along a direction, or most likely if it refutes everything."""
    free = np.ones_like(z, dtype=bool)
    while True:
        step = _free_step(here, direction, least, free)
        leaves = free & (((z <= 0) & (step < 0)) | ((z >= 1) & (step > 0)))
        if not np.any(leaves):
            return step
        free &= ~leaves


def _free_step(here: Local, direction: np.ndarray, least: np.ndarray, free: np.ndarray) -> np.ndarray:
    identity = np.eye(free.shape[1])
    both = free[:, :, None] & free[:, None, :]
    size = np.max(np.abs(here.information), axis=(1, 2))[:, None, None] + 1e-300
    information = np.where(both, here.information, 0) + size * (RIDGE + ~free[:, :, None]) * identity
    slope, direction = np.where(free, here.slope, 0), np.where(free, direction, 0)
    to_centre, along = (np.linalg.solve(information, v[:, :, None])[:, :, 0] for v in (slope, direction))
    squared = 2 * (here.log_likelihood - least) + np.sum(slope * to_centre, axis=1)
    length = np.sqrt(np.maximum(np.sum(direction * along, axis=1), 1e-300))
    radius = np.sqrt(np.maximum(squared, 0))
    return to_centre + (radius / length)[:, None] * along
