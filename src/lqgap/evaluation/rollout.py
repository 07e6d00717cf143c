"""A policy on a plant, step by step.

    y_t = C x_t + z_t ,   u_t = limits(policy(y_t)) ,   x_{t+1} = A x_t + B u_t + w_t

at a cost of y_t'Q y_t + u_t'R u_t, or what `LQG` adds to it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import IntLike, read_key
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, require_fit
from lqgap.evaluation.noise import standard_normal
from lqgap.linalg import sqrt_psd
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.systems import LQG
from lqgap.systems.losses import without_losses


class Trajectory(eqx.Module):
    """What happened at steps 0..horizon; u is the input the plant received."""

    x: Float[Array, "time state"]
    u: Float[Array, "time input"]
    y: Float[Array, "time output"]
    cost: Float[Array, " time"]


def rollout(
    policy: AbstractPolicy,
    plant: LQG,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    limits: LimitsLike = None,
    precision: str = "float64",
) -> Trajectory:
    """One run of steps 0..horizon; `jax.vmap` over keys gives many.

    The plant's noise depends on the key alone, not on the policy.

    Args:
        limits: (low, high), numbers or vectors: the plant receives inputs clipped to them.
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    require_fit(policy, plant)
    dtype = read_precision(precision)
    allowed = read_limits(limits, num_inputs=policy.num_inputs)
    policy, plant, allowed = cast((policy, plant, allowed), dtype)
    return _rollout(policy, plant, allowed, key, horizon)


def draw_noise(plant: LQG, key: PRNGKeyArray, *, num_steps: int) -> Float[Array, "time_and_one noise"]:
    """Standard normal numbers for a rollout: a row for x_0, then one for (w_t, z_t) of each step."""
    return standard_normal(key, (num_steps + 1, plant.num_states + plant.num_outputs), plant.A.dtype)


def simulate(
    policy: AbstractPolicy,
    plant: LQG,
    noise: Float[Array, "time_and_one noise"],
    key: PRNGKeyArray,
    limits: Limits,
) -> Trajectory:
    """The run that given standard normal numbers make."""
    states = plant.num_states
    S0_root, W_root, V_root = (sqrt_psd(covariance) for covariance in (plant.S0, plant.W, plant.V))

    def step(carry: tuple[Any, Array, Array], normal: Array) -> tuple[Any, tuple[Array, ...]]:
        memory, x, u_last = carry
        y = plant.C @ x + V_root @ normal[states:]
        memory, u = policy.step(memory, y, u_last)
        u = limits.clip(u, u_last)
        cost = plant.cost(x, y, u)
        return (memory, plant.A @ x + plant.B @ u + W_root @ normal[:states], u), (x, u, y, cost)

    start = (without_losses(policy.init(key)), S0_root @ noise[0, :states], jnp.zeros_like(plant.B[0]))
    x, u, y, cost = jax.lax.scan(step, start, noise[1:])[1]
    return Trajectory(x=x, u=u, y=y, cost=cost)


@eqx.filter_jit
def _rollout(
    policy: AbstractPolicy, plant: LQG, limits: Limits, key: PRNGKeyArray, horizon: int
) -> Trajectory:
    key_noise, key_policy = jax.random.split(key)
    return simulate(policy, plant, draw_noise(plant, key_noise, num_steps=horizon + 1), key_policy, limits)
