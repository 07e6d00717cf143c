"""The optimal controller of a plant as a reference for any other policy.

Whatever the policy (nonlinear, randomised, saturated), with xhat the exact filter of the plant,

    V^pi - V* = E sum_{h=0}^{H} || u_h + K_h xhat_{h|h} ||^2_{M_h} .

Every term is non-negative, so that its average needs many times fewer rollouts than a difference of costs.
And the terms depend on the plant's state through the filter alone: a rollout in innovations form,

    y_h = C xhat_{h|h-1} + e_h ,   xhat_{h|h} = xhat_{h|h-1} + L_h e_h ,   e_h ~ N(0, S_h) ,
    xhat_{h+1|h} = A xhat_{h|h} + B u_h ,

has the same law of (y, u, xhat) as the plant itself, and draws p numbers a step instead of n + p.

It holds whatever the state left at H is worth (`systems.finite_horizon`): with the terminal cost x'P_{H+1}x,
xhat = xhat_{h|h} and mu = A xhat + B u_h the square is completed at every step,

    xhat'C'QC xhat + u_h'R u_h + mu'P_{h+1} mu = xhat'P_h xhat + ||u_h + K_h xhat||^2_{M_h} ,

and covariances, which no input changes, drop out of the difference. In a task that goes on P_{H+1} = P, and
mu'P mu is what the state left costs when the optimal controller takes over: the gap is then what is paid
above the optimum in all time, if the policy acts until H and the optimal controller, knowing xhat, after it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.linalg import quadratic
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits
from lqgap.policies.policy import Memory
from lqgap.systems import LQG, FiniteOptimum, solve_finite
from lqgap.systems.losses import without_losses


class Reference(eqx.Module):
    """What a plant's optimal controller knows and would do, at every step."""

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    K: Float[Array, "time input state"]
    M: Float[Array, "time input input"]
    L: Float[Array, "time state output"]
    S_root: Float[Array, "time output output"]
    value: Float[Array, ""]


class Emission(eqx.Module):
    """What a plant in innovations form shows at a step, and what its exact filter then knows."""

    y: Float[Array, " output"]
    xhat: Float[Array, " state"]


class RolloutState(eqx.Module):
    """Where a rollout stands before step h: what the policy remembers, xhat_{h|h-1} and u_{h-1}."""

    memory: Memory
    predicted: Float[Array, " state"]
    u_last: Float[Array, " input"]


class Excess(eqx.Module):
    """|| u_h + K_h xhat_{h|h} ||^2_{M_h}, y_h and u_h of every step, and where the rollout ended."""

    per_step: Float[Array, " time"]
    y: Float[Array, "time output"]
    u: Float[Array, "time input"]
    end: RolloutState


def reference_of(plant: LQG, *, horizon: int, ends: bool = True) -> Reference:
    """The optimum of steps 0..horizon, for a task that ends there or goes on."""
    return make_reference(plant, solve_finite(plant, horizon=horizon, ends=ends))


def make_reference(plant: LQG, finite: FiniteOptimum) -> Reference:
    """The optimum of a plant as a reference."""
    return Reference(
        A=plant.A,
        B=plant.B,
        C=plant.C,
        K=finite.K,
        M=finite.M,
        L=finite.L,
        S_root=jnp.linalg.cholesky(finite.S),
        value=finite.value,
    )


def emit(
    C: Float[Array, "output state"],
    L: Float[Array, "state output"],
    S_root: Float[Array, "output output"],
    predicted: Float[Array, " state"],
    normal: Float[Array, " output"],
) -> Emission:
    """One step in innovations form, from xhat_{h|h-1} and a standard normal vector."""
    innovation = S_root @ normal
    return Emission(C @ predicted + innovation, predicted + L @ innovation)


def begin(policy: AbstractPolicy, reference: Reference, key: PRNGKeyArray) -> RolloutState:
    """Before the first observation."""
    memory = without_losses(policy.init(key))
    return RolloutState(memory, jnp.zeros_like(reference.A[0]), jnp.zeros_like(reference.B[0]))


def excess(
    policy: AbstractPolicy,
    reference: Reference,
    normals: Float[Array, "time output"],
    start: RolloutState,
    limits: Limits,
    *,
    backprop_decay: Float[Array, ""] | None = None,
) -> Excess:
    """The excess cost of a policy along one rollout, whose noise is made of standard normal numbers.

    Args:
        backprop_decay: the share of a derivative that passes from a step to the one before it, if not all.
            Less than one truncates back-propagation through time softly, and keeps derivatives of loops that
            amplify small changes finite.
    """
    A, B, C = reference.A, reference.B, reference.C

    def step(state: RolloutState, given: tuple[Array, ...]) -> tuple[RolloutState, tuple[Array, ...]]:
        state = _decay(state, backprop_decay)
        K, M, L, S_root, normal = given
        now = emit(C, L, S_root, state.predicted, normal)
        memory, u = policy.step(state.memory, now.y, state.u_last)
        u = limits.clip(u, state.u_last)
        after = RolloutState(memory, A @ now.xhat + B @ u, u)
        return after, (quadratic(u + K @ now.xhat, M), now.y, u)

    steps = (reference.K, reference.M, reference.L, reference.S_root, normals)
    # Rematerialised in the backward pass: less memory, and faster.
    end, (per_step, y, u) = jax.lax.scan(jax.checkpoint(step), start, steps)
    return Excess(per_step=per_step, y=y, u=u, end=end)


def _decay(tree: Any, share: Float[Array, ""] | None) -> Any:
    """The same values with smaller derivatives."""
    if share is None:
        return tree

    def weaken(leaf: Any) -> Any:
        return (
            jax.lax.stop_gradient((1 - share) * leaf) + share * leaf if eqx.is_inexact_array(leaf) else leaf
        )

    return jax.tree.map(weaken, tree)
