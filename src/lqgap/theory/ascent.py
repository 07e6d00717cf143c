"""The largest gap over the plants of a family that a log does not refute, by local models of both.

Around a point z of the unit box let l be the log-likelihood, with slope s and information F = sum of the squared
slopes of the misfit, and G the gap, with slope g. As far as l is quadratic and G linear, the points with
l >= least are an ellipsoid, and G is largest on its surface:

    z + F^-1 s + r F^-1 g / (g'F^-1 g)^1/2 ,      r^2 = 2 (l - least) + s'F^-1 s ;

where r^2 < 0 the log refutes all points of the model, and z + F^-1 s leads to where it fits best. Coordinates
that a step would carry out of the box stay where they are. Every point that is visited and not refuted counts:
the answer is reached by a plant of the family, and so is never above the true maximum. Starts on all sides of
the set guard against maxima that are only local; nothing proves that there is no other.
"""

from collections.abc import Callable

import equinox as eqx
import numpy as np
from jaxtyping import Float

NUM_STEPS = 10
LONGEST = 0.25  # step, in units of the box
RIDGE = 1e-9


class Local(eqx.Module):
    """Log-likelihood and gap at some points, with their slopes and the information."""

    log_likelihood: Float[np.ndarray, " point"]
    gap: Float[np.ndarray, " point"]
    slope: Float[np.ndarray, "point parameter"]
    gap_slope: Float[np.ndarray, "point parameter"]
    information: Float[np.ndarray, "point parameter parameter"]


def climb(
    local: Callable[[Float[np.ndarray, "point parameter"]], Local],
    starts: Float[np.ndarray, "point parameter"],
    pushes: Float[np.ndarray, "point parameter"],
    *,
    least: Float[np.ndarray, " point"],
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point parameter"]]:
    """The largest unrefuted gap met on the way from every start, and where; -inf where all were refuted.

    Args:
        pushes: directions in which the first steps go instead of along the slope of the gap; zero for none.
        least: the log-likelihood below which a point is refuted.
    """
    z = starts.copy()
    best, best_z = np.full(len(z), -np.inf), starts.copy()
    has_pushed = ~np.any(pushes, axis=1)
    for _ in range(NUM_STEPS):
        here = local(z)
        better = (here.log_likelihood >= least) & (here.gap > best)
        best[better], best_z[better] = here.gap[better], z[better]
        direction = np.where(has_pushed[:, None], here.gap_slope, pushes)
        step, is_inside = ellipsoid_step(z, here, direction, least)
        has_pushed |= is_inside
        step = np.nan_to_num(step)  # where it left double precision: stay
        size = np.max(np.abs(step), axis=1, keepdims=True)
        z = np.clip(z + step * np.minimum(1, LONGEST / np.maximum(size, 1e-300)), 0, 1)
    return best, best_z


def ellipsoid_step(
    z: Float[np.ndarray, "point parameter"],
    here: Local,
    direction: Float[np.ndarray, "point parameter"],
    least: Float[np.ndarray, " point"],
) -> tuple[Float[np.ndarray, "point parameter"], np.ndarray]:
    """To where the model is largest along a direction, and whether it has unrefuted points at all."""
    free = np.ones_like(z, dtype=bool)
    for _ in range(z.shape[1] + 1):
        step, is_inside = _free_step(here, direction, least, free)
        leaves = free & (((z <= 0) & (step < 0)) | ((z >= 1) & (step > 0)))
        if not np.any(leaves):
            break
        free &= ~leaves
    return step, is_inside


def _free_step(
    here: Local, direction: np.ndarray, least: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    identity = np.eye(free.shape[1])
    both = free[:, :, None] & free[:, None, :]
    size = np.max(np.abs(here.information), axis=(1, 2))[:, None, None] + 1e-300
    information = np.where(both, here.information, 0) + size * (RIDGE + ~free[:, :, None]) * identity
    slope, direction = np.where(free, here.slope, 0), np.where(free, direction, 0)
    to_centre, along = (np.linalg.solve(information, v[:, :, None])[:, :, 0] for v in (slope, direction))
    squared = 2 * (here.log_likelihood - least) + np.sum(slope * to_centre, axis=1)
    length = np.sqrt(np.maximum(np.sum(direction * along, axis=1), 1e-300))
    radius = np.sqrt(np.maximum(squared, 0))
    return to_centre + (radius / length)[:, None] * along, squared > 0
