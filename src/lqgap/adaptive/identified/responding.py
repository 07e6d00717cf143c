"""Disturbance responses of an identified operator: a new model keeps the taps and what they were learned on.

Its features are computed again from the last samples. A model that is not stable is shrunk to the spectral
radius 0.999, as nature's outputs would not exist. After the warm-up, 20 steps without learned input set the
scale of updates.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.adaptive.identified.fitting import Units, fit_model
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.identified.loop import AbstractIdentified, Found, IdentifiedMemory
from lqgap.adaptive.identified.response import (
    Features,
    Loop,
    Response,
    ResponseLaw,
    close_inside,
    keep_finite,
)
from lqgap.identification.streaming import Stream
from lqgap.linalg import spectral_radius
from lqgap.policies.policy import LinearStep

STABLE = 0.999
WARM_UP = 4  # times d


class AbstractResponding(AbstractIdentified):
    """A learner that learns taps on the disturbances of an identified model."""

    response: eqx.AbstractVar[Response]

    parts: ClassVar[tuple[type, ...]] = (UnknownPlant, Response)

    def blank(self) -> tuple[Loop, Features, ResponseLaw]:
        """No input."""
        loop = close_inside(self.plant.nothing_known(), self._inside())
        law = self.response.nothing_learned(count=self.response.memory)
        return loop, self.response.at_rest(len(loop.A)), law

    def identify(self, stream: Stream, units: Units, normals: Array) -> Found:  # noqa: ARG002
        """The likeliest model, stable with the stabiliser inside."""
        model = fit_model(self.plant, stream, units)
        loop = close_inside(units.restore(model.plant), self._inside())
        shrink = STABLE / jnp.maximum(spectral_radius(loop.A), STABLE)
        is_finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(loop)]))
        plan = eqx.tree_at(lambda tree: tree.A, loop, shrink * loop.A)
        return Found(plan, model.is_sound & is_finite, jnp.asarray(True))

    def advance(self, plan: Loop, state: Features, y: Array, u_last: Array) -> Features:
        """The features."""
        return self.response.advance(plan, state, y, u_last)

    def surprise(self, plan: Loop, state: Features, y: Array, u_last: Array) -> Float[Array, ""]:
        """That of the features."""
        return self.response.surprise(plan, state, y, u_last)

    def respond(self, memory: IdentifiedMemory, normal: Array) -> tuple[ResponseLaw, Array]:  # noqa: ARG002
        """Learn while in control, and act."""
        learned = keep_finite(self.response.learn(memory.law, memory.state), memory.law)
        is_learning = memory.is_committed & ~memory.is_guarded
        law = jax.tree.map(lambda new, old: jnp.where(is_learning, new, old), learned, memory.law)
        return law, self.response.act(law, memory.state)

    def figures(self, memory: IdentifiedMemory) -> dict[str, Float[Array, ""]]:
        """The size of the taps."""
        return {"taps": jnp.linalg.norm(memory.law.taps)}

    def _inside(self) -> LinearStep:
        return self.plant.stabilizer.at(self.plant.stabilizer.num_transient)
