"""Models between the members of a cover, from the members' own sums.

A prediction is linear in the features of the model,

    f(Theta, E) = <model_features(Theta), sample_features(E)> .

Write those of a model in terms of the members' features, as affine combinations,

    model_features(Theta) = sum_i c_i model_features(Theta_i) + residual ,    sum_i c_i = 1 ,

by least squares. Then f(Theta, E) = sum_i c_i f_i(E) up to the residual, and with the sums over samples
`dist` and `loss` of the members (see `statistics`) the same sums of any models are

    sum (f - f')^2 = -1/2 (c - c')' dist (c - c') ,      sum (f - Y)^2 = c . loss - 1/2 c' dist c :

no sample need be kept, and a model costs O(N^2) however many samples there were. With as many members as
there are features the residual is zero; a family of few parameters needs far fewer, since its features are
smooth functions of them.

The estimate minimises the loss, from the best members, by Adam in coordinates in which the box is the unit
cube; the model acted on minimises J over the models within beta of the estimate, by the same with a penalty
outside, and is drawn back towards the estimate until it is within.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from lqgap.adaptive.vtr.state import VTRChoice
from lqgap.adaptive.vtr.statistics import Sums
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import AbstractFamily, Finite
from lqgap.systems import LQG, arx_matrix, change_coordinates, solve
from lqgap.theory.constants.features import prediction_features

NUM_STARTS = 3
NUM_STEPS = 80
FIRST_STEP, LAST_STEP = 0.05, 0.0005  # of the unit cube
CUT = 1e-9  # singular values of the members' features below this, relative to the largest, do not count
PENALTY = 100.0
NUM_HALVINGS = 20


class Found(eqx.Module):
    """Parameters of the estimate, and of the model to act on."""

    estimate: Float[Array, " parameter"]
    optimistic: Float[Array, " parameter"]


class Refinement(eqx.Module):
    """A family seen through the members of a cover."""

    family: AbstractFamily
    low: Float[Array, " parameter"]
    high: Float[Array, " parameter"]
    theta: Float[Array, "member parameter"]  # of the members
    J: Float[Array, " member"]
    origin: Float[Array, " feature"]  # features of the first member
    inverse: Float[Array, "others feature"]  # from features relative to it to the other members' shares
    coordinates: Float[Array, "state state"]  # of the members' states
    length: int = eqx.field(static=True)

    def __init__(
        self,
        family: AbstractFamily,
        members: Finite,
        N: Float[Array, "member output window"],
        length: int,
        coordinates: Float[Array, "state state"],
    ):
        if not family.is_traceable or any(parameter.choices for parameter in family.parameters):
            raise InvalidArgumentError(
                "family cannot be differentiated (discrete parameters, or a build function that JAX cannot "
                "trace): pass refine=False, and the sets are widened instead"
            )
        self.family, self.length, self.coordinates = family, length, coordinates
        self.low, self.high = (
            jnp.asarray([getattr(parameter, name) for parameter in family.parameters], dtype=float)
            for name in ("low", "high")
        )
        self.theta = members.parameters
        optima = members.optima()
        self.J = optima.J
        features = np.asarray(jax.vmap(prediction_features)(N, optima.S))
        self.origin = jnp.asarray(features[0])
        self.inverse = jnp.asarray(np.linalg.pinv((features[1:] - features[0]).T, rcond=CUT))

    def build(self, theta: Float[Array, " parameter"]) -> LQG:
        """The plant of these parameters, in the coordinates of the members."""
        return change_coordinates(self.family.branches[0].plant(theta), self.coordinates)

    def shares(self, theta: Float[Array, " parameter"]) -> Float[Array, " member"]:
        """c: how much of each member a model is."""
        relative = self._features(theta) - self.origin
        others = self.inverse @ relative
        return jnp.concatenate([1 - jnp.sum(others)[None], others])

    def residual(self, theta: Float[Array, " parameter"]) -> Float[Array, ""]:
        """What the members' features do not span of a model's, relative to its distance from the first."""
        relative = self._features(theta) - self.origin
        spanned = jnp.linalg.pinv(self.inverse, rtol=1e-12) @ (self.inverse @ relative)
        return jnp.linalg.norm(relative - spanned) / jnp.linalg.norm(relative)

    def distance(self, sums: Sums, c: Array, other: Array) -> Float[Array, ""]:
        """sum (f - f')^2 of two models, given their shares."""
        return -0.5 * (c - other) @ sums.dist @ (c - other)

    def loss(self, sums: Sums, c: Array) -> Float[Array, ""]:
        """sum (f - Y)^2 of a model, given its shares."""
        return c @ sums.loss - 0.5 * c @ sums.dist @ c

    def choose(self, sums: Sums, choice: VTRChoice, *, beta: Float[Array, ""]) -> Found:
        """The estimate, and the model with the smallest J within beta of it."""
        scale = jnp.maximum(jnp.min(sums.loss), 1e-300)
        losses = jnp.where(choice.members, sums.loss, jnp.inf)
        starts = self._unit(self.theta[jax.lax.top_k(-losses, min(NUM_STARTS, len(losses)))[1]])
        points = self._descend(lambda z: self.loss(sums, self._shares_at(z)) / scale, starts)
        values = jax.lax.map(lambda z: self.loss(sums, self._shares_at(z)), points)
        estimate = points[jnp.argmin(jnp.where(jnp.isnan(values), jnp.inf, values))]
        centre = self._shares_at(estimate)

        def outside(z: Array) -> Array:
            return self.distance(sums, self._shares_at(z), centre) / beta

        def pessimism(z: Array) -> Array:
            J = solve(self.build(self._theta(z))).J
            return J / self.J[choice.optimistic] + PENALTY * jax.nn.relu(outside(z) - 1) ** 2

        hopes = jnp.where(choice.members, self.J, jnp.inf)
        hopeful = self._unit(self.theta[jax.lax.top_k(-hopes, min(NUM_STARTS, len(hopes)))[1]])
        points = self._descend(pessimism, jnp.concatenate([hopeful, estimate[None]]))
        points = jax.lax.map(lambda z: self._draw_back(z, estimate, outside), points)
        J = jax.lax.map(lambda z: solve(self.build(self._theta(z))).J, points)
        optimistic = points[jnp.argmin(jnp.where(jnp.isnan(J), jnp.inf, J))]
        return Found(self._theta(estimate), self._theta(optimistic))

    def _draw_back(self, z: Array, estimate: Array, outside: Any) -> Array:
        """z, or if it is outside of the set, a point of the boundary between the estimate and z."""

        def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            within, without = ends
            middle = 0.5 * (within + without)
            is_within = outside(estimate + middle * (z - estimate)) <= 1
            return jnp.where(is_within, middle, within), jnp.where(is_within, without, middle)

        share, _ = jax.lax.fori_loop(0, NUM_HALVINGS, halve, (jnp.asarray(0.0), jnp.asarray(1.0)))
        return jnp.where(outside(z) <= 1, z, estimate + share * (z - estimate))

    def _descend(self, objective: Any, starts: Array) -> Array:
        """Where Adam arrives from every start; a step that is not finite is left out."""
        rate = optax.cosine_decay_schedule(FIRST_STEP, NUM_STEPS, alpha=LAST_STEP / FIRST_STEP)
        adam = optax.adam(rate)

        def step(_: Any, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            points, state = carry
            # One start after the other: their loops must not run at the same time (docs/decisions/0005).
            gradient = jax.lax.map(jax.grad(objective), points)
            gradient = jnp.where(jnp.all(jnp.isfinite(gradient), axis=1, keepdims=True), gradient, 0.0)
            updates, state = adam.update(gradient, state)
            return jnp.clip(points + jnp.asarray(updates), 0, 1), state

        return jax.lax.fori_loop(0, NUM_STEPS, step, (starts, adam.init(starts)))[0]

    def _features(self, theta: Array) -> Array:
        plant = self.build(theta)
        optimum = solve(plant)
        return prediction_features(arx_matrix(optimum, plant, length=self.length), optimum.S)

    def _shares_at(self, z: Array) -> Array:
        return self.shares(self._theta(z))

    def _theta(self, z: Array) -> Array:
        return self.low + z * (self.high - self.low)

    def _unit(self, thetas: Array) -> Array:
        width = jnp.where(self.high > self.low, self.high - self.low, 1.0)
        return jax.vmap(lambda theta: (theta - self.low) / width)(thetas)
