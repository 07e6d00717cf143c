"""A model of the samples so far: regression, weighted realisation, Gauss-Newton; and whether it may be used.

The certificate: the controller of the model must stabilise all of 20 plants drawn from what the data leave
possible. It ends a warm-up when the data say so; lengths in the papers are functions of unknown constants.

Everything is computed in units of the signals, so that neither ridge nor singular values depend on others.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.batches import in_turn
from lqgap.identification.design import Design, design
from lqgap.identification.efficient import (
    Information,
    MarkovMetric,
    draw_plants,
    information,
    polish,
)
from lqgap.identification.realization import Realization
from lqgap.identification.streaming import Stream
from lqgap.identification.subspace import keep_states, weighted

NUM_DRAWS = 20


def draw_normals(told: UnknownPlant, *, key: PRNGKeyArray) -> Float[Array, "draw parameter"]:
    """For the plants of a certificate."""
    n, m, p = told.order, told.num_inputs, told.num_outputs
    return jax.random.normal(key, (NUM_DRAWS, n * (n + m + 2 * p)))


class Units(eqx.Module):
    """The sizes of outputs and inputs."""

    y: Float[Array, " output"]
    u: Float[Array, " input"]

    def restore(self, model: Realization) -> Realization:
        """A model of signals in these units, as one of the signals themselves."""
        return Realization(
            model.A,
            model.B / self.u[None, :],
            model.C * self.y[:, None],
            model.F / self.y[None, :],
            model.S * self.y[:, None] * self.y[None, :],
        )

    def restore_design(self, found: Design) -> Design:
        """A controller of signals in these units, as one of the signals themselves."""
        M = found.M / self.u[:, None] / self.u[None, :]
        G = self.u[:, None] * found.G
        return Design(self.restore(found.plant), G, M, found.Phat, found.J, found.is_sound)


class Model(eqx.Module):
    """The likeliest plant, in units of the signals, and how sure it is."""

    plant: Realization
    metric: MarkovMetric
    sure: Information
    num_states: Int[Array, ""]
    is_sound: Bool[Array, ""]


def fit_model(told: UnknownPlant, stream: Stream, units: Units) -> Model:
    """What the samples so far say."""
    estimate = told.regression.estimate(stream, y_scale=units.y, u_scale=units.u)
    metric = MarkovMetric(estimate)
    rough, values, noise = weighted(estimate, metric, told.order)
    is_kept = jnp.full(told.order, True)
    if told.chooses_order:
        is_kept = (values > noise).at[0].set(True)
        rough = keep_states(rough, is_kept)
    plant = polish(rough, estimate, metric)
    is_sound = (stream.moments.count > told.num_features) & jnp.all(
        jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(plant)])
    )
    plant = jax.tree.map(lambda leaf: jnp.where(is_sound, leaf, 0), plant)
    num_states = jnp.sum(is_kept)
    rank = num_states * (told.num_inputs + 2 * told.num_outputs)
    return Model(plant, metric, information(metric, plant, rank), num_states, is_sound)


def design_for(told: UnknownPlant, model: Model, units: Units) -> Design:
    """The model's optimal controller, in its units."""
    Q, R = weights(told, units)
    found = design(in_turn(model, model.plant), Q=Q, R=R)
    return eqx.tree_at(lambda tree: tree.is_sound, found, found.is_sound & model.is_sound)


def weights(
    told: UnknownPlant, units: Units
) -> tuple[Float[Array, "output output"], Float[Array, "input input"]]:
    """Q and R in units of the signals."""
    of_y, of_u = (unit[:, None] * unit[None, :] for unit in (units.y, units.u))
    return told.Q * of_y, told.R * of_u


def is_certified(found: Design, model: Model, *, normals: Float[Array, "draw parameter"]) -> Bool[Array, ""]:
    """Whether a controller stabilises all plants that are drawn."""
    plants = draw_plants(model.metric, model.plant, model.sure, normals=normals)
    return jnp.all(jax.vmap(found.loop_radius)(plants) < 1)
