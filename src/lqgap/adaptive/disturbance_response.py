"""Disturbance response control with a known or with an identified operator.

    u_t = u^0_t + sum_{k<r} taps[k] f_{t-k} ,      taps by gradient or Newton steps (`identified.response`)

M. Simchowitz, K. Singh, E. Hazan, Improper learning for non-stochastic control (2020), by gradients on
nature's y; M. Simchowitz, Making non-stochastic control (almost) as easy as stochastic (2020), by Newton's
steps. Guarantee: regret against the best taps of order sqrt(T) by gradients, polylog(T) by Newton's steps
under noise that excites, with a known operator; T^2/3 or sqrt(T) with one that is identified first.

As printed, gradients on nature's y have steps and a ball from unknown constants, and are slow: the default is
Newton's step on innovations. Where the plant forgets slowly, wrong inputs of the start are felt for long, and
where it is not stable there is no nature's y at all: a stabiliser inside repairs both.
"""

import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.adaptive.identified.knowledge import UnknownPlant, read_stabilizer
from lqgap.adaptive.identified.loop import in_double
from lqgap.adaptive.identified.responding import WARM_UP, AbstractResponding
from lqgap.adaptive.identified.response import (
    MAX_MEMORY,
    Feature,
    Features,
    Loop,
    Response,
    ResponseLaw,
    Update,
    close_inside,
    keep_finite,
)
from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.arguments import FloatLike, IntLike, read_count
from lqgap.errors import InvalidArgumentError
from lqgap.identification.realization import innovation_form
from lqgap.identification.streaming import LARGEST
from lqgap.policies.policy import AbstractLinearPolicy
from lqgap.systems import LQG, solve
from lqgap.systems.faults import Gate
from lqgap.systems.lqg import require_output_cost

FORGOTTEN = 100


class ResponseMemory(eqx.Module):
    """What one step hands to the next."""

    seen: Features
    law: ResponseLaw
    gate: Gate


class DisturbanceResponse(AbstractLearner):
    """Learned taps on the disturbances of a plant that is known.

    Args:
        plant: whose operator is known; its noise is not used beyond the filter's gain.
        memory: r, how many disturbances count; by default as many as the optimal controller remembers.
        update: "newton", "gradient" or "strong gradient".
        feature: "innovations" or "nature".
        regularization: of Newton's steps; larger is slower and safer.
        stabilizer: a linear controller inside, for plants that are slow or not stable.
    """

    loop: Loop
    response: Response

    reasons: ClassVar[tuple[tuple[str, str], ...]] = (
        ("diverged", "an input was not finite: the stabiliser, or no input, is in control at this step"),
    )
    parts: ClassVar[tuple[type, ...]] = (Loop, Response)

    def __init__(
        self,
        plant: LQG,
        *,
        memory: IntLike | None = None,
        update: Update = "newton",
        feature: Feature = "innovations",
        regularization: FloatLike = 5.0,
        stabilizer: AbstractLinearPolicy | None = None,
    ):
        inside = read_stabilizer(stabilizer, plant.num_inputs, plant.num_outputs)
        require_output_cost(plant, what="DisturbanceResponse")
        optimum = solve(plant)
        self.loop = close_inside(innovation_form(optimum, plant), inside.at(inside.num_transient))
        radius = float(jnp.max(jnp.abs(jnp.linalg.eigvals(self.loop.A))))
        if radius >= 1:
            raise InvalidArgumentError(
                f"the plant has the spectral radius {radius:.4g}, and without input it is not stable: give a "
                f"linear controller that makes it so, stabilizer="
            )
        if memory is None:
            slow = float(jnp.max(jnp.abs(jnp.linalg.eigvals(plant.A - plant.B @ optimum.K))))
            memory = min(max(math.ceil(math.log(FORGOTTEN) / -math.log(max(slow, 1e-3))), 2), MAX_MEMORY)
        self.response = Response(
            plant.Q, plant.R, memory=memory, update=update, feature=feature, regularization=regularization
        )

    @property
    def members(self) -> None:
        """There is no class."""
        return

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.response.sizes[1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.response.sizes[2]

    def init(self, key: PRNGKeyArray) -> ResponseMemory:  # noqa: ARG002
        """Before the first observation; in double precision, as sums need it."""
        nothing = self.response.nothing_learned()
        return ResponseMemory(self.response.at_rest(len(self.loop.A)), nothing, Gate.unused())

    def step(
        self, memory: ResponseMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[ResponseMemory, Float[Array, " input"]]:
        """Observe, learn, act."""
        precision, (response, loop, y, u_last) = y.dtype, in_double((self.response, self.loop, y, u_last))
        y = jnp.where(jnp.abs(y) < LARGEST, y, jnp.nan)
        gate = memory.gate.judge(response.surprise(loop, memory.seen, y, u_last), len(y))
        seen = response.advance(loop, memory.seen, jnp.where(gate.is_lost, jnp.nan, y), u_last)
        law = keep_finite(response.learn(memory.law, seen), memory.law)
        u = response.act(law, seen)
        safe = jnp.where(jnp.isfinite(seen.inner), seen.inner, 0)
        u = jnp.where(jnp.all(jnp.isfinite(u)), u, safe)
        return ResponseMemory(seen, law, gate), u.astype(precision)

    def snapshot(self, memory: ResponseMemory) -> Snapshot:
        """The size of the taps."""
        return Snapshot(
            acts_on=jnp.zeros(0),
            plausible=jnp.zeros(0, dtype=bool),
            num_changes=jnp.asarray(0),
            status=(~jnp.all(jnp.isfinite(memory.seen.s))).astype(int),
            is_fault=memory.gate.is_lost,
            is_warming=jnp.asarray(False),
            figures={"taps": jnp.linalg.norm(memory.law.taps)},
        )


class IdentifiedDisturbanceResponse(AbstractResponding):
    """Learned taps on the disturbances of a plant that is identified first, by random inputs.

    Args:
        plant: what is told of it.
        horizon: for which the exploration is chosen, H^2/3 steps; the policy goes on after it.
        memory: how many disturbances count.
        update: "newton", "gradient" or "strong gradient".
        feature: "innovations" or "nature".
        regularization: of Newton's steps; larger is slower and safer.
    """

    plant: UnknownPlant
    response: Response
    first_fit: Int[Array, ""]  # when the exploration ends
    has_refits: ClassVar[bool] = False

    def __init__(
        self,
        plant: UnknownPlant,
        *,
        horizon: IntLike,
        memory: IntLike = 10,
        update: Update = "newton",
        feature: Feature = "innovations",
        regularization: FloatLike = 5.0,
    ):
        steps = read_count("horizon", horizon, least=1, most=100_000_000)
        self.plant = plant
        self.first_fit = jnp.asarray(max(WARM_UP * plant.num_features, math.ceil(steps ** (2 / 3))))
        self.response = Response(
            plant.Q, plant.R, memory=memory, update=update, feature=feature, regularization=regularization
        )
