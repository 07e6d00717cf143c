"""Algorithm 2 at the end of the warm-up: the members near a plant that is realised from random inputs.

The Markov parameters are regressed on the way, and members and estimate are compared in coordinates (see
`identification.selection`): those are left that differ by (C_w / T_w)^1/2 at most. Calibrated, C_w comes from
records of the members themselves,

    (C_w / T)^1/2 = MARGIN max over members and records of the distance of the truth from its estimate ,

and T_w is the first of WAITS at which this set has no member whose controller ruins the truth; the last if
there is none. Warm-up inputs cost as much as the optimum: E u'M u = J in the mean over members.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.batches import take
from lqgap.identification.markov import Moments, regress, window_moments
from lqgap.identification.realization import Realization
from lqgap.identification.selection import coordinate_forms, form_distances
from lqgap.identification.streaming import MarkovRegression, Stream
from lqgap.systems import LQG, Optimum
from lqgap.systems.separation import excess_rates

WAITS = 128 * 2 ** np.arange(4)  # steps
MARGIN, NUM_RECORDS, MOST_MEMBERS = 2.0, 12, 16


class ModelSelection(eqx.Module):
    """The members in coordinates, and the regression."""

    regression: MarkovRegression = eqx.field(static=True)
    forms: Realization
    gains: Float[Array, "member state output"]
    kind: str = eqx.field(static=True)

    def __init__(self, systems: LQG, optima: Optimum, *, kind: str, length: int):
        p, m = systems.num_outputs, systems.num_inputs
        length = max(length, systems.num_states + 1)
        self.regression = MarkovRegression(length, p, m, num_kept=length)
        self.forms, self.gains = coordinate_forms(systems, optima, length=length, method=kind)
        self.kind = kind

    @eqx.filter_jit
    def distances(self, moments: Moments) -> Float[Array, " member"]:
        """The distance of every member from the plant that these moments tell of."""
        sizes = self.regression.length, self.regression.num_outputs, self.regression.num_inputs
        parameters = regress(moments, sizes, jnp.asarray(self.regression.ridge)).parameters
        return form_distances(self.forms, self.gains, parameters, method=self.kind)

    def left(self, stream: Stream, radius: Float[Array, ""]) -> Bool[Array, " member"]:
        """The members that are left; the nearest always is."""
        distances = self.distances(stream.moments)
        return (distances <= radius) | (distances == jnp.min(distances))

    def calibrate(self, systems: LQG, optima: Optimum, sigma_u: float) -> tuple[int, float, float]:
        """T_w, C_w, and the root mean square of beliefs until then."""
        length = self.regression.length
        rows = np.unique(np.linspace(0, len(optima.J) - 1, MOST_MEMBERS).astype(int))
        ys, us, sizes = random_records(*take((systems, optima), rows), sigma_u)
        each = zip(np.concatenate(ys), np.concatenate(us), strict=True)
        found = [[self.distances(window_moments(y[:n], u[:n], length)) for n in WAITS] for y, u in each]
        found = np.reshape(found, (len(rows), NUM_RECORDS, len(WAITS), -1))
        own = found[np.arange(len(rows)), :, :, rows]  # member, record, wait
        radius = MARGIN * np.max(own, axis=(0, 1))
        ruins = ~np.isfinite(excess_rates(systems, optima)[:, rows].T)[:, None, None]  # of a truth, by others
        is_enough = ~np.any(ruins & (found <= radius[:, None]), axis=(0, 1, 3))
        at = int(np.argmax(is_enough)) if np.any(is_enough) else -1
        wait = int(WAITS[at])
        return wait, wait * float(radius[at]) ** 2, float(np.max(sizes[:wait]))


def random_records(systems: LQG, optima: Optimum, sigma_u: float) -> tuple[np.ndarray, ...]:
    """Records (truth, record, time, signal) of y and u under random inputs, and sizes of beliefs by time."""
    A, B, C, L, S = (np.asarray(x) for x in (systems.A, systems.B, systems.C, optima.L, optima.S))
    random, (count, p, n) = np.random.default_rng(0), C.shape
    ys = (
        random.normal(size=(count, NUM_RECORDS, WAITS[-1], p))
        @ np.swapaxes(np.linalg.cholesky(S), 1, 2)[:, None]
    )
    us = sigma_u * random.normal(size=(count, NUM_RECORDS, WAITS[-1], B.shape[2]))
    predicted, sizes = np.zeros((count, n, NUM_RECORDS)), []
    for t in range(WAITS[-1]):
        xhat = predicted + L @ np.swapaxes(ys[:, :, t], 1, 2)
        ys[:, :, t] += np.swapaxes(C @ predicted, 1, 2)
        sizes.append(np.sqrt(np.max(np.mean(np.sum(xhat**2, axis=1), axis=1))))
        predicted = A @ xhat + B @ np.swapaxes(us[:, :, t], 1, 2)
    return ys, us, np.asarray(sizes)
