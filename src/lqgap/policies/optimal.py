"""The optimal controllers of a known plant, in filter form: u = -K xhat_{t|t}, y_t included.

    xhat_{t|t} = xhat_{t|t-1} + L (y_t - C xhat_{t|t-1}) ,   xhat_{t|t-1} = A xhat_{t-1|t-1} + B u_{t-1} ,
    u_t = -K xhat_{t|t}

`StationaryLQG` has constant gains, `FiniteHorizonLQG` those of every step. With xi = xhat_{t|t-1} as its
state such a controller is linear: Ac = (A-BK)(I-LC), Bc = (A-BK)L, Cc = -K(I-LC), Dc = -KL.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import IntLike
from lqgap.policies.policy import AbstractLinearPolicy, LinearStep, move_ahead
from lqgap.systems import LQG, solve, solve_finite
from lqgap.systems.innovation import filter_step


class StationaryLQG(AbstractLinearPolicy):
    """The optimal controller in the long run: steady filter, constant gain."""

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    K: Float[Array, "input state"]
    L: Float[Array, "state output"]
    S: Float[Array, "output output"]

    def __init__(self, plant: LQG):
        optimum = solve(plant)
        self.A, self.B, self.C = plant.A, plant.B, plant.C
        self.K, self.L, self.S = optimum.K, optimum.L, optimum.S

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.B.shape[-1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.C.shape[-2]

    def at(self, time: Any) -> LinearStep:  # noqa: ARG002
        """The controller as a linear recursion in xhat_{t|t-1}."""
        return _linear(self, self.K, self.L)

    def init(self, key: PRNGKeyArray) -> Float[Array, " state"]:  # noqa: ARG002
        """xhat before the first observation."""
        return jnp.zeros_like(self.A[0])

    def step(
        self, memory: Float[Array, " state"], y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[Float[Array, " state"], Float[Array, " input"]]:
        """Filter, then apply the gain."""
        xhat = filter_step(self.A, self.B, self.C, self.L, self.S, memory, u_last, y).xhat
        return xhat, -self.K @ xhat


class FiniteMemory(eqx.Module):
    """The belief and the time."""

    xhat: Float[Array, " state"]
    time: Int[Array, ""]


class FiniteHorizonLQG(AbstractLinearPolicy):
    """The optimal controller for steps 0..horizon: its cost is V*.

    Its gains are planned for a whole record: a lost observation is predicted over, and they stay as planned.
    """

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
    def num_inputs(self) -> int:
        """Length of u."""
        return self.B.shape[-1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.C.shape[-2]

    @property
    def horizon(self) -> int:
        """The last step it is made for."""
        return self.K.shape[-3] - 1

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "FiniteHorizonLQG":  # noqa: ARG002
        """The controller of a horizon that ends sooner; its filter's gains stay."""
        return eqx.tree_at(lambda policy: policy.K, self, move_ahead(self.K, self.horizon - horizon))

    def at(self, time: Any) -> LinearStep:
        """The controller's recursion at one step."""
        return _linear(self, self.K[time], self.L[time])

    def init(self, key: PRNGKeyArray) -> FiniteMemory:  # noqa: ARG002
        """Before the first observation."""
        return FiniteMemory(xhat=jnp.zeros_like(self.A[0]), time=jnp.asarray(0))

    def step(
        self, memory: FiniteMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[FiniteMemory, Float[Array, " input"]]:
        """Filter with the gain of this step, then apply the gain of this step."""
        now = memory.time
        L, S = self.L[now], self.S[now]
        xhat = filter_step(self.A, self.B, self.C, L, S, memory.xhat, u_last, y).xhat
        return FiniteMemory(xhat=xhat, time=now + 1), -self.K[now] @ xhat


def _linear(policy: StationaryLQG | FiniteHorizonLQG, K: Array, L: Array) -> LinearStep:
    closed_loop = policy.A - policy.B @ K
    keep = jnp.eye(len(policy.A), dtype=L.dtype) - L @ policy.C
    return LinearStep(Ac=closed_loop @ keep, Bc=closed_loop @ L, Cc=-K @ keep, Dc=-K @ L)
