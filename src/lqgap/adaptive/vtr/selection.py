"""Algorithm 2 at the end of the warm-up: the members near a plant that is realised from random inputs.

The Markov parameters are regressed on the way, and members and estimate are compared in coordinates (see
`identification.selection`): those are left that differ by (C_w / T_w)^1/2 at most. Calibrated, C_w comes from
records of the members themselves,

    (C_w / T)^1/2 = MARGIN max over members and records of the distance of the truth from its estimate ,

and T_w is the first of WAITS at which this set has no member whose controller ruins the truth; the last if
there is none. Warm-up inputs cost as much as the optimum: E u'M u = J in the mean over members.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.batches import take
from lqgap.identification.realization import Realization
from lqgap.identification.selection import coordinate_forms, form_distances
from lqgap.identification.streaming import MarkovRegression, Stream
from lqgap.systems import LQG, Optimum, steady_predict
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

    def distances(self, stream: Stream) -> Float[Array, " member"]:
        """Of every member from the plant of the stream."""
        sizes = self.regression.num_outputs, self.regression.num_inputs
        estimate = self.regression.estimate(stream, y_scale=jnp.ones(sizes[0]), u_scale=jnp.ones(sizes[1]))
        return form_distances(self.forms, self.gains, estimate.parameters, method=self.kind)

    def left(self, stream: Stream, radius: Float[Array, ""]) -> Bool[Array, " member"]:
        """The members that are left; the nearest always is."""
        distances = self.distances(stream)
        return (distances <= radius) | (distances == jnp.min(distances))

    def calibrate(self, systems: LQG, optima: Optimum, sigma_u: float) -> tuple[int, float]:
        """T_w and C_w."""
        rows = np.unique(np.linspace(0, len(optima.J) - 1, MOST_MEMBERS).astype(int))
        few = take((systems, optima), rows)
        found = np.asarray(_own_records(self, few[0], few[1], sigma_u))
        own = found[np.arange(len(rows)), :, :, rows]  # member, record, wait
        radius = MARGIN * np.max(own, axis=(0, 1))
        ruins = ~np.isfinite(excess_rates(systems, optima)[:, rows].T)[:, None, None]  # of a truth, by others
        is_enough = ~np.any(ruins & (found <= radius[:, None]), axis=(0, 1, 3))
        at = int(np.argmax(is_enough)) if np.any(is_enough) else -1
        return int(WAITS[at]), float(WAITS[at] * radius[at] ** 2)


def size_of_warmup(systems: LQG, optima: Optimum, sigma_u: float, steps: int) -> float:
    """The largest root mean square of a belief during the random inputs of a warm-up."""
    A, B, L, S = (np.asarray(each) for each in (systems.A, systems.B, optima.L, optima.S))
    added = sigma_u**2 * B @ np.swapaxes(B, 1, 2) + L @ S @ np.swapaxes(L, 1, 2)
    X = np.zeros_like(A)
    for _ in range(steps):
        X = A @ X @ np.swapaxes(A, 1, 2) + added
    return float(np.sqrt(np.max(np.trace(X, axis1=1, axis2=2))))


@eqx.filter_jit
def _own_records(
    selection: ModelSelection, systems: LQG, optima: Optimum, sigma_u: float
) -> Float[Array, "truth record wait member"]:
    """Distances of all members from what records of random inputs of each truth say."""

    sizes, longest = (systems.num_outputs, systems.num_inputs), WAITS[-1]

    def of_record(plant: LQG, optimum: Optimum, key: Array) -> Array:
        def step(carry: tuple[Array, Array, Stream], noise: Any) -> tuple[tuple[Array, Array, Stream], None]:
            predicted, u_last, stream = carry
            e, u = jnp.linalg.cholesky(optimum.S) @ noise[0], sigma_u * noise[1]
            stream = selection.regression.step(stream, plant.C @ predicted + e, u_last)
            return (steady_predict(plant, predicted + optimum.L @ e, u), u, stream), None

        keys, found = jax.random.split(key), []
        noise = tuple(jax.random.normal(k, (longest, size)) for k, size in zip(keys, sizes, strict=True))
        carry = jnp.zeros_like(plant.A[0]), jnp.zeros(sizes[1]), selection.regression.init()
        for first, last in zip([0, *WAITS[:-1]], WAITS, strict=True):
            carry, _ = jax.lax.scan(step, carry, jax.tree.map(lambda x, a=first, b=last: x[a:b], noise))
            found.append(selection.distances(carry[-1]))
        return jnp.stack(found)

    keys = jax.random.split(jax.random.key(2), NUM_RECORDS)
    records = jax.vmap(of_record, in_axes=(None, None, 0))
    return jax.lax.map(lambda pair: records(pair[0], pair[1], keys), (systems, optima))
