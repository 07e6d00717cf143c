"""The cost of a linear policy, without chance: covariances instead of rollouts.

With the controller u = Cc xi + Dc y, xi_+ = Ac xi + Bc y, the closed loop s = (x, xi) is linear,

    AA = [[A + B Dc C, B Cc], [Bc C, Ac]] ,   Gam = diag(W, 0) + [B Dc; Bc] V [B Dc; Bc]' ,
    NN = [C 0]'Q[C 0] + [Dc C, Cc]'R[Dc C, Cc] ,   n0 = tr(QV) + tr(Dc'R Dc V) ,

and its cost can be had forward or (time-invariant) by doubling, in log H steps:

    forward:   Pi_{h+1} = AA Pi_h AA' + Gam ,   V = sum_h tr(NN Pi_h) + n0
    doubling:  the map over k steps composed with itself; nothing is subtracted, unstable loops are exact too

The gap is summed from its identity (see `reference`) over the joint covariance of xhat and xi, not from a
difference of costs, and keeps its digits where it is small. All results have derivatives.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, is_concrete
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import read_horizon, require_fit
from lqgap.evaluation.reference import reference_of
from lqgap.linalg import spectral_radius
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.policies import AbstractLinearPolicy, LinearStep
from lqgap.systems import LQG
from lqgap.systems.lqg import require_single

METHODS = ("forward", "doubling")


class ClosedLoop(eqx.Module):
    """A linear controller on a plant, at one step."""

    transition: Float[Array, "joint joint"]
    noise: Float[Array, "joint joint"]
    cost: Float[Array, "joint joint"]
    constant: Float[Array, ""]


def exact_cost(
    policy: AbstractLinearPolicy, plant: LQG, *, horizon: IntLike, method: str | None = None
) -> Float[Array, ""]:
    """V^pi over steps 0..horizon; by doubling unless the policy changes with time."""
    horizon = _read(policy, plant, horizon)
    method = method or ("doubling" if policy.horizon is None else "forward")
    if method not in METHODS:
        raise InvalidArgumentError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    if method == "doubling" and policy.horizon is not None:
        raise InvalidArgumentError("method is 'doubling', but the policy changes with time: use 'forward'")
    cost = (_forward if method == "forward" else _doubling)(policy, plant, horizon)
    if is_concrete(cost) and not jnp.isfinite(cost):
        # Powers of an unstable mode that nothing excites overflow; its covariance stays zero.
        return _forward(policy, plant, horizon)
    return cost


def exact_gap(policy: AbstractLinearPolicy, plant: LQG, *, horizon: IntLike) -> Float[Array, ""]:
    """V^pi - V* over steps 0..horizon."""
    return _gap(policy, plant, _read(policy, plant, horizon))


def exact_average_cost(policy: AbstractLinearPolicy, plant: LQG) -> Float[Array, ""]:
    """The long-run cost of a step; infinite if the closed loop is not stable."""
    _read(policy, plant, 0)
    if policy.horizon is not None:
        raise InvalidArgumentError(
            f"the policy ends at step {policy.horizon} and has no average cost: use one without a horizon"
        )
    return _average(policy, plant)


def close_loop(controller: LinearStep, plant: LQG) -> ClosedLoop:
    """The joint dynamics of plant and controller."""
    A, B, C = plant.A, plant.B, plant.C
    order = len(controller.Ac)
    from_output = jnp.concatenate([B @ controller.Dc, controller.Bc])
    of_input = jnp.concatenate([controller.Dc @ C, controller.Cc], axis=1)
    of_output = jnp.concatenate([C, jnp.zeros((len(C), order), C.dtype)], axis=1)
    process = jax.scipy.linalg.block_diag(plant.W, jnp.zeros((order, order), C.dtype))
    return ClosedLoop(
        transition=jnp.block(
            [[A + B @ controller.Dc @ C, B @ controller.Cc], [controller.Bc @ C, controller.Ac]]
        ),
        noise=process + from_output @ plant.V @ from_output.T,
        cost=of_output.T @ plant.Q @ of_output + of_input.T @ plant.R @ of_input,
        constant=jnp.trace(plant.Q @ plant.V)
        + jnp.trace(controller.Dc.T @ plant.R @ controller.Dc @ plant.V),
    )


def closed_loop_radius(policy: AbstractLinearPolicy, plant: LQG) -> Float[Array, ""]:
    """The spectral radius of plant and policy together: stable if below one."""
    _read(policy, plant, 0)
    if policy.horizon is not None:
        raise InvalidArgumentError(f"the policy changes with time and ends at step {policy.horizon}")
    return spectral_radius(close_loop(policy.at(0), plant).transition)


def _read(policy: Any, plant: LQG, horizon: Any) -> int:
    if not isinstance(policy, AbstractLinearPolicy):
        raise InvalidArgumentError(
            f"policy is a {type(policy).__name__}, which is not linear: lqgap.gap serves any policy"
        )
    require_single(plant)
    require_fit(policy, plant)
    return read_horizon(policy, horizon)


def _first_covariance(loop: ClosedLoop, plant: LQG) -> Array:
    order = len(loop.transition) - len(plant.A)
    return jnp.pad(plant.S0, (0, order))


@eqx.filter_jit
def _forward(policy: AbstractLinearPolicy, plant: LQG, horizon: int) -> Array:
    def step(Pi: Array, time: Array) -> tuple[Array, Array]:
        loop = close_loop(policy.at(time), plant)
        return (
            loop.transition @ Pi @ loop.transition.T + loop.noise,
            jnp.sum(loop.cost * Pi) + loop.constant,
        )

    first = _first_covariance(close_loop(policy.at(0), plant), plant)
    return jnp.sum(jax.lax.scan(step, first, jnp.arange(horizon + 1))[1])


class _Steps(eqx.Module):
    """Several steps of a closed loop at once: s -> transition s + noise, costing s'cost s + constant."""

    transition: Array
    noise: Array
    cost: Array
    constant: Array

    def then(self, later: "_Steps") -> "_Steps":
        return _Steps(
            transition=later.transition @ self.transition,
            noise=later.transition @ self.noise @ later.transition.T + later.noise,
            cost=self.cost + self.transition.T @ later.cost @ self.transition,
            constant=self.constant + later.constant + jnp.sum(later.cost * self.noise),
        )


@eqx.filter_jit
def _doubling(policy: AbstractLinearPolicy, plant: LQG, horizon: int) -> Array:
    loop = close_loop(policy.at(0), plant)
    power = _Steps(loop.transition, loop.noise, loop.cost, loop.constant)
    nothing = jnp.zeros_like(loop.cost)
    total = _Steps(
        jnp.eye(len(nothing), dtype=nothing.dtype), nothing, nothing, jnp.zeros_like(loop.constant)
    )
    for bit in reversed(bin(horizon + 1)[2:]):
        total = total.then(power) if bit == "1" else total
        power = power.then(power)
    return jnp.sum(total.cost * _first_covariance(loop, plant)) + total.constant


@eqx.filter_jit
def _average(policy: AbstractLinearPolicy, plant: LQG) -> Array:
    loop = close_loop(policy.at(0), plant)
    Pi = lyapunov_sum(loop.transition, loop.noise)
    cost = jnp.sum(loop.cost * Pi) + loop.constant
    return jnp.where(jnp.isfinite(cost), cost, jnp.inf)


@eqx.filter_jit
def _gap(policy: AbstractLinearPolicy, plant: LQG, horizon: int) -> Array:
    reference = reference_of(plant, horizon=horizon)
    A, B, C = reference.A, reference.B, reference.C

    def step(Pi: Array, now: tuple[Array, tuple[Array, ...]]) -> tuple[Array, Array]:
        # s = (xhat_{h|h-1}, xi), driven by the innovation: y = C xhat + e.
        time, (K, M, L, S_root) = now
        controller = policy.at(time)
        transition = close_loop(controller, plant).transition
        from_innovation = jnp.concatenate([A @ L + B @ controller.Dc, controller.Bc]) @ S_root
        deviation = jnp.concatenate([controller.Dc @ C + K, controller.Cc], axis=1)
        at_once = (controller.Dc + K @ L) @ S_root
        covariance = deviation @ Pi @ deviation.T + at_once @ at_once.T
        return transition @ Pi @ transition.T + from_innovation @ from_innovation.T, jnp.sum(M * covariance)

    first = jnp.zeros_like(close_loop(policy.at(0), plant).transition)
    steps = (reference.K, reference.M, reference.L, reference.S_root)
    return jnp.sum(jax.lax.scan(step, first, (jnp.arange(horizon + 1), steps))[1])
