"""Acting by the optimal controller of a model, the likeliest or an optimistic one, as if it were the plant.

    s = chi + B u_last ,   e = y - C s ,   chi = A s + F e ,   u = -G chi + sigma t^-1/4 probe

A lost component of e is filled as expected from those seen. The probe, J / m M^-1 in covariance, costs
sigma^2 J t^-1/2 a step, exactly if J and M are those of the plant.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from lqgap.adaptive.identified.fitting import Units, design_for, fit_model, is_certified
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.identified.loop import AbstractIdentified, Found, IdentifiedMemory
from lqgap.adaptive.identified.optimism import Optimism
from lqgap.batches import in_turn
from lqgap.identification.design import Design
from lqgap.identification.streaming import Stream
from lqgap.systems.innovation import fill_lost


class LinearPlan(eqx.Module):
    """A controller, a root of the covariance of a unit probe, and J of the likeliest model."""

    design: Design
    probe: Float[Array, "input input"]
    J: Float[Array, ""]


class AbstractCertain(AbstractIdentified):
    """A learner that acts by a model's optimal controller."""

    probing: eqx.AbstractVar[Float[Array, ""]]
    optimism: eqx.AbstractVar[Optimism | None]

    parts: ClassVar[tuple[type, ...]] = (UnknownPlant, Optimism)

    def blank(self) -> tuple[LinearPlan, Float[Array, " state"], None]:
        """No input, and a belief at rest."""
        plant, zero = self.plant.nothing_known(), jnp.asarray(0.0)
        G, Phat = jnp.zeros_like(plant.B.T), jnp.zeros_like(plant.A)
        none = Design(plant, G, self.plant.R, Phat, zero, jnp.asarray(False))
        return LinearPlan(none, jnp.zeros_like(self.plant.R), zero), jnp.zeros(plant.order), None

    def identify(self, stream: Stream, units: Units, normals: Float[Array, "draw parameter"]) -> Found:
        """The controller of the likeliest model, or of an optimistic one."""
        model = fit_model(self.plant, stream, units)
        likeliest = found = design_for(self.plant, model, units)
        if self.optimism is not None:
            found = self.optimism.lean(self.plant, model, likeliest, units)
        is_safe = is_certified(found, model, normals=normals)
        restored = units.restore_design(in_turn(is_safe, found))
        m = self.num_inputs
        root = solve_triangular(jnp.linalg.cholesky(restored.M), jnp.eye(m), lower=True).T
        plan = LinearPlan(restored, jnp.sqrt(likeliest.J / m) * root, likeliest.J)
        return Found(plan, found.is_sound, is_safe)

    def advance(self, plan: LinearPlan, state: Array, y: Array, u_last: Array) -> Float[Array, " state"]:
        """chi after another observation."""
        model = plan.design.plant
        s = state + model.B @ u_last
        return model.A @ s + model.F @ fill_lost(y - model.C @ s, model.S).innovation

    def surprise(self, plan: LinearPlan, state: Array, y: Array, u_last: Array) -> Float[Array, ""]:
        """By the model that is acted on."""
        model = plan.design.plant
        return fill_lost(y - model.C @ (state + model.B @ u_last), model.S).distance

    def respond(self, memory: IdentifiedMemory, normal: Array) -> tuple[None, Array]:
        """By the model, with the probe."""
        size = self.probing * jnp.maximum(memory.time, 1) ** -0.25
        return None, -memory.plan.design.G @ memory.state + size * (memory.plan.probe @ normal)

    def figures(self, memory: IdentifiedMemory) -> dict[str, Float[Array, ""]]:
        """What the plan expects to cost, and by how much optimism lowered it."""
        plan = memory.plan
        share = 1 - plan.design.J / jnp.where(plan.J > 0, plan.J, 1)
        return {"J": plan.design.J} | ({} if self.optimism is None else {"optimism": share})
