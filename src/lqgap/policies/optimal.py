"""The optimal controllers of a known plant, in filter form: u = -K xhat_{t|t}, y_t included.

    xhat_{t|t} = xhat_{t|t-1} + L_t (y_t - C xhat_{t|t-1}) ,   xhat_{t|t-1} = A xhat_{t-1|t-1} + B u_{t-1} ,
    u_t = -K_t xhat_{t|t}

`StationaryLQG` goes on for ever: its gain K is constant, its filter exact from the first observation on and
steady once it has settled. `FiniteHorizonLQG` has the gains of every step of a task that ends. With
xi = xhat_{t|t-1} as its state such a controller is linear: Ac = (A-BK)(I-LC), Bc = (A-BK)L, Cc = -K(I-LC),
Dc = -KL. Gains are planned for a record without losses, and what losses change is remembered: the filter
stays exact (`systems.losses`).
"""

from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import IntLike
from lqgap.batches import batch_of_one
from lqgap.policies.policy import AbstractLinearPolicy, LinearStep, entry_at, move_ahead, require_one_of
from lqgap.policies.target import AbstractTarget, Origin
from lqgap.systems import LQG, Optimum, solve, solve_finite
from lqgap.systems.innovation import filter_step
from lqgap.systems.losses import AbstractLosses, Losses
from lqgap.systems.setpoints import Rest, find_rest
from lqgap.systems.settling import settle_filters

FILTERS = ("varying", "steady")


def linear_step(model: Any, K: Float[Array, "input state"], L: Float[Array, "state output"]) -> LinearStep:
    """Filter and gain, for a model with A, B and C, as a linear recursion in xhat_{t|t-1}."""
    closed_loop = model.A - model.B @ K
    keep = jnp.eye(len(model.A), dtype=L.dtype) - L @ model.C
    return LinearStep(Ac=closed_loop @ keep, Bc=closed_loop @ L, Cc=-K @ keep, Dc=-K @ L)


class OptimalMemory(eqx.Module):
    """The belief, what losses have done to it, where to steer to, and the time."""

    xhat: Float[Array, " state"]
    losses: AbstractLosses
    target: AbstractTarget
    time: Int[Array, ""]


class AbstractOptimal(AbstractLinearPolicy):
    """A filter and a gain for every step; the last entries of the stacks stay."""

    A: eqx.AbstractVar[Float[Array, "state state"]]
    B: eqx.AbstractVar[Float[Array, "state input"]]
    C: eqx.AbstractVar[Float[Array, "output state"]]
    K: eqx.AbstractVar[Float[Array, "gain_time input state"]]
    L: eqx.AbstractVar[Float[Array, "filter_time state output"]]
    S: eqx.AbstractVar[Float[Array, "filter_time output output"]]

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.B.shape[-1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.C.shape[-2]

    def rest(self, follow: Sequence[int]) -> Rest:
        """That of the plant."""
        return find_rest(self.A, self.B, self.C, self.K[0], follow=follow)

    def at(self, time: Any) -> LinearStep:
        """The controller as a linear recursion in xhat_{t|t-1}."""
        return linear_step(self, entry_at(self.K, time), entry_at(self.L, time))

    def init(self, key: PRNGKeyArray) -> OptimalMemory:  # noqa: ARG002
        """Before the first observation."""
        nothing = jnp.zeros_like(self.A)
        return OptimalMemory(xhat=nothing[0], losses=Losses(nothing), target=Origin(), time=jnp.asarray(0))

    def step(
        self, memory: OptimalMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[OptimalMemory, Float[Array, " input"]]:
        """Filter with the gain of this step, then apply the gain of this step."""
        K, L, S = (entry_at(stack, memory.time) for stack in (self.K, self.L, self.S))
        gains = memory.losses.gains(self.C, L, S)
        xhat = filter_step(self.A, self.B, self.C, *gains, memory.xhat, u_last, y).xhat
        losses = memory.losses.after(self.A, self.C, L, S, ~jnp.isnan(y))
        target = memory.target.move()
        memory = OptimalMemory(xhat=xhat, losses=losses, target=target, time=memory.time + 1)
        return memory, target.steer(K, xhat)


class StationaryLQG(AbstractOptimal):
    """The optimal controller of a task that goes on.

    Args:
        filters: exact from the first step on ("varying"), or the classical constant gain ("steady"), which is
            one state-space model and pays for it at the start.
        optimum: of the plant, where it is known.
    """

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    K: Float[Array, "one input state"]
    L: Float[Array, "filter_time state output"]
    S: Float[Array, "filter_time output output"]

    def __init__(
        self,
        plant: LQG,
        *,
        filters: Literal["varying", "steady"] = "varying",
        optimum: Optimum | None = None,
    ):
        require_one_of("filters", filters, FILTERS)
        optimum = solve(plant) if optimum is None else optimum
        self.A, self.B, self.C, self.K = plant.A, plant.B, plant.C, optimum.K[None]
        self.L, self.S = optimum.L[None], optimum.S[None]
        if filters == "varying":
            gains = settle_filters(*batch_of_one((plant, optimum)))
            self.L, self.S = gains.L[:, 0], gains.S[:, 0]

    @property
    def num_transient(self) -> int:
        """Steps before the filter is steady."""
        return self.L.shape[-3] - 1


class FiniteHorizonLQG(AbstractOptimal):
    """The optimal controller for steps 0..horizon of a task that ends there: its cost is V*."""

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    K: Float[Array, "time input state"]
    L: Float[Array, "time state output"]
    S: Float[Array, "time output output"]

    def __init__(self, plant: LQG, horizon: IntLike):
        finite = solve_finite(plant, horizon=horizon)
        self.A, self.B, self.C = plant.A, plant.B, plant.C
        self.K, self.L, self.S = finite.K, finite.L, finite.S

    @property
    def horizon(self) -> int:
        """The last step it is made for."""
        return self.K.shape[-3] - 1

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "FiniteHorizonLQG":  # noqa: ARG002
        """The controller of a horizon that ends sooner; its filter's gains stay."""
        return eqx.tree_at(lambda policy: policy.K, self, move_ahead(self.K, self.horizon - horizon))
