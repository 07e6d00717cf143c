"""The plant with the smallest optimal cost among those that the data leave possible, in closed form.

With the information I of `identification.efficient` and g = dJ/dtheta, the minimum of the linearised cost
over the linearised set { theta : misfit <= beta } is

    theta~ = theta - sqrt(beta) I^+ g / sqrt(g' I^+ g)

with beta a quantile of chi-square with as many degrees of freedom as the rank of I. The step is halved until
the predictor is stable, the true misfit is below 1.5 beta and the cost falls; where it never does, theta
itself is the answer. The papers minimise over balls of coordinates, which is no computation, and coordinates
are no property of a plant; their radii, functions of unknown constants, are five to ten times as large.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import scipy.special
from jaxtyping import Array, Float

from lqgap.adaptive.identified.fitting import Model, Units, weights
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.arguments import FloatLike, read_probability
from lqgap.batches import in_turn
from lqgap.identification.design import Design, design
from lqgap.identification.efficient import flatten, unflatten
from lqgap.linalg import spectral_radius

NUM_HALVINGS = 6
SLACK = 1.5  # of the true misfit over beta


class Optimism(eqx.Module):
    """How far the data let a plant be from the likeliest, for every number of states."""

    beta: Float[Array, " order"]

    def __init__(self, told: UnknownPlant, *, confidence: FloatLike):
        ranks = (told.num_inputs + 2 * told.num_outputs) * jnp.arange(1, told.order + 1)
        self.beta = jnp.asarray(scipy.special.chdtri(ranks, 1 - read_probability("confidence", confidence)))

    def lean(self, told: UnknownPlant, model: Model, known: Design, units: Units) -> Design:
        """The controller of theta~, in units of the signals."""
        beta = self.beta[jnp.maximum(model.num_states - 1, 0)]
        Q, R = weights(told, units)
        theta, g = flatten(known.plant), flatten(known.cost_gradient(Q=Q))
        g = jnp.where(jnp.isfinite(g), g, 0)
        direction = model.sure.invert(g)
        length = jnp.sqrt(g @ direction)
        move = -jnp.sqrt(beta) * direction / jnp.where(length > 0, length, 1)

        def attempt(fraction: Array) -> tuple[Design, Array]:
            plant = unflatten(theta + fraction * move, known.plant)
            is_stable = spectral_radius(plant.Abar) < 1
            is_inside = model.metric.misfit(plant, known.plant) <= SLACK * beta
            found = design(in_turn(is_stable, plant), Q=Q, R=R)
            return found, found.is_sound & is_inside & is_stable & (found.J < known.J)

        tried, is_good = jax.vmap(attempt)(0.5 ** jnp.arange(NUM_HALVINGS + 1, dtype=theta.dtype))
        first = jnp.argmax(is_good)  # the longest step that will do
        found = jax.tree.map(lambda new, old: jnp.where(is_good[first], new[first], old), tried, known)
        return eqx.tree_at(lambda tree: tree.is_sound, found, known.is_sound)
