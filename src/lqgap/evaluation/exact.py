"""The cost of a linear policy, without chance: covariances instead of rollouts.

With the controller u = Cc xi + Dc y, xi_+ = Ac xi + Bc y, the closed loop s = (x, xi) is linear,

    AA = [[A + B Dc C, B Cc], [Bc C, Ac]] ,   Gam = diag(W, 0) + [B Dc; Bc] V [B Dc; Bc]' ,
    NN = [C 0]'Q[C 0] + [Dc C, Cc]'R[Dc C, Cc] ,   n0 = tr(QV) + tr(Dc'R Dc V) ,

and its cost can be had forward or, once the controller is time-invariant, by doubling, in log H steps:

    forward:   Pi_{h+1} = AA Pi_h AA' + Gam ,   V = sum_h tr(NN Pi_h) + n0
    doubling:  the map over k steps composed with itself; nothing is subtracted, unstable loops are exact too

The gap is summed from its identity (see `reference`) over the joint covariance of xhat and xi, not from a
difference of costs. Near the optimum xi follows xhat, the deviation D (xhat, xi) of the input cancels, and
D Pi D' would lose as many digits as a difference of costs. So a root of Pi is carried instead, triangular by
QR; the rounding is then relative to the deviation and not to its square:

    Pi_h = G_h G_h' ,   G_{h+1} G_{h+1}' = [T G_h, N] [T G_h, N]' ,   gap = sum_h || [D_h G_h, N_u] ||^2_{M_h}

All results have derivatives.
"""

import functools
from collections.abc import Callable
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
from lqgap.policies.policy import require_one_of
from lqgap.systems import LQG, Optimum, solve

METHODS = ("forward", "doubling")


class ClosedLoop(eqx.Module):
    """A linear controller on a plant, at one step."""

    transition: Float[Array, "joint joint"]
    noise: Float[Array, "joint joint"]
    cost: Float[Array, "joint joint"]
    constant: Float[Array, ""]


def exact_cost(
    policy: AbstractLinearPolicy,
    plant: LQG,
    *,
    horizon: IntLike,
    method: str | None = None,
    ends: bool = True,
) -> Float[Array, ""]:
    """V^pi over steps 0..horizon; by doubling unless the policy has a horizon.

    Args:
        ends: whether the task ends there; if not, the state left then costs x'Px (`systems.finite_horizon`).
    """
    horizon = _read(policy, plant, horizon)
    method = method if method is not None else ("doubling" if policy.horizon is None else "forward")
    require_one_of("method", method, METHODS)
    if method == "doubling" and policy.horizon is not None:
        raise InvalidArgumentError("method is 'doubling', but the policy changes with time: use 'forward'")
    last = jnp.zeros_like(plant.A) if ends else solve(plant).P
    cost = (_forward if method == "forward" else _doubling)(policy, plant, horizon, last)
    if is_concrete(cost) and not jnp.isfinite(cost):
        # Powers of an unstable mode that nothing excites overflow; its covariance stays zero.
        return _forward(policy, plant, horizon, last)
    return cost


def exact_gap(
    policy: AbstractLinearPolicy, plant: LQG, *, horizon: IntLike, ends: bool = True
) -> Float[Array, ""]:
    """V^pi - V* over steps 0..horizon, of a task that ends there or goes on."""
    return _gap(policy, plant, _read(policy, plant, horizon), ends)


def exact_average_cost(policy: AbstractLinearPolicy, plant: LQG) -> Float[Array, ""]:
    """The long-run cost of a step; infinite if the closed loop is not stable."""
    _read(policy, plant, 0)
    if policy.horizon is not None:
        raise InvalidArgumentError(
            f"the policy ends at step {policy.horizon} and has no average cost: use one without a horizon"
        )
    return _average(policy, plant)


def average_excess(controller: LinearStep, plant: LQG, optimum: Optimum) -> Float[Array, ""]:
    """The long-run cost of a step above J, from its identity; infinite if the closed loop is not stable."""
    joint = _join(controller, plant, optimum.K, optimum.M, optimum.L, jnp.linalg.cholesky(optimum.S))
    Pi = lyapunov_sum(joint.transition, joint.noise @ joint.noise.T)
    covariance = joint.deviation @ Pi @ joint.deviation.T + joint.at_once @ joint.at_once.T
    excess = jnp.sum(joint.M * covariance)
    return jnp.where(jnp.isfinite(excess), excess, jnp.inf)


def close_loop(controller: LinearStep, plant: LQG) -> ClosedLoop:
    """The joint dynamics of plant and controller."""
    A, B, C = plant.A, plant.B, plant.C
    order = len(controller.Ac)
    from_output = jnp.concatenate([B @ controller.Dc, controller.Bc])
    of_input = jnp.concatenate([controller.Dc @ C, controller.Cc], axis=1)
    process = jax.scipy.linalg.block_diag(plant.W, jnp.zeros((order, order), C.dtype))
    return ClosedLoop(
        transition=jnp.block(
            [[A + B @ controller.Dc @ C, B @ controller.Cc], [controller.Bc @ C, controller.Ac]]
        ),
        noise=process + from_output @ plant.V @ from_output.T,
        cost=_loop_cost(plant, of_input),
        constant=jnp.trace(plant.Q @ plant.V)
        + jnp.trace(controller.Dc.T @ plant.R @ controller.Dc @ plant.V),
    )


def closed_loop_radius(policy: AbstractLinearPolicy, plant: LQG) -> Float[Array, ""]:
    """The spectral radius of plant and policy together: stable if below one."""
    _read(policy, plant, 0)
    if policy.horizon is not None:
        raise InvalidArgumentError(f"the policy changes with time and ends at step {policy.horizon}")
    return spectral_radius(close_loop(policy.at(policy.num_transient), plant).transition)


def _loop_cost(plant: LQG, of_input: Array) -> Array:
    """NN, with what the plant's cost has of states: [I 0]'(C'QC + Qx)[I 0], and [I 0]'N and its transpose."""
    order = of_input.shape[1] - plant.num_states
    cost = jnp.pad(plant.state_weight, (0, order)) + of_input.T @ plant.R @ of_input
    if plant.N is None:
        return cost
    cross = jnp.pad(plant.N, ((0, order), (0, 0))) @ of_input
    return cost + cross + cross.T


def _read(policy: Any, plant: LQG, horizon: Any) -> int:
    require_fit(policy, plant)
    return read_horizon(policy, horizon)


@eqx.filter_jit
def _forward(policy: AbstractLinearPolicy, plant: LQG, horizon: int, P_last: Array) -> Array:
    Pi, cost = _first_steps(policy, plant, horizon + 1)
    return cost + _terminal(P_last, Pi)


def _first_steps(policy: AbstractLinearPolicy, plant: LQG, num_steps: int) -> tuple[Array, Array]:
    """The covariance after the first steps, and what they cost."""

    def step(Pi: Array, time: Array) -> tuple[Array, Array]:
        loop = close_loop(policy.at(time), plant)
        return (
            loop.transition @ Pi @ loop.transition.T + loop.noise,
            jnp.sum(loop.cost * Pi) + loop.constant,
        )

    first = jnp.pad(plant.S0, (0, len(policy.at(0).Ac)))
    Pi, costs = jax.lax.scan(step, first, jnp.arange(num_steps))
    return Pi, jnp.sum(costs)


def _terminal(P_last: Array, Pi: Array) -> Array:
    """E x'Px of the plant's part of a covariance."""
    return jnp.sum(P_last * Pi[: len(P_last), : len(P_last)])


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
def _doubling(policy: AbstractLinearPolicy, plant: LQG, horizon: int, P_last: Array) -> Array:
    num_first = min(policy.num_transient, horizon + 1)
    first, before = _first_steps(policy, plant, num_first)
    loop = close_loop(policy.at(policy.num_transient), plant)
    power = _Steps(loop.transition, loop.noise, loop.cost, loop.constant)
    nothing = jnp.zeros_like(loop.cost)
    total = _Steps(
        jnp.eye(len(nothing), dtype=nothing.dtype), nothing, nothing, jnp.zeros_like(loop.constant)
    )
    for bit in reversed(bin(horizon + 1 - num_first)[2:]):
        total = total.then(power) if bit == "1" else total
        power = power.then(power)
    last = total.transition @ first @ total.transition.T + total.noise
    return before + jnp.sum(total.cost * first) + total.constant + _terminal(P_last, last)


@eqx.filter_jit
def _average(policy: AbstractLinearPolicy, plant: LQG) -> Array:
    loop = close_loop(policy.at(policy.num_transient), plant)
    Pi = lyapunov_sum(loop.transition, loop.noise)
    cost = jnp.sum(loop.cost * Pi) + loop.constant
    return jnp.where(jnp.isfinite(cost), cost, jnp.inf)


class _Joint(eqx.Module):
    """s = (xhat_{h|h-1}, xi) and u + K xhat_{h|h} at one step, driven by a standard normal innovation."""

    transition: Array
    noise: Array
    deviation: Array
    at_once: Array
    M: Array


def _join(controller: LinearStep, plant: LQG, K: Array, M: Array, L: Array, S_root: Array) -> _Joint:
    return _Joint(
        transition=close_loop(controller, plant).transition,
        noise=jnp.concatenate([plant.A @ L + plant.B @ controller.Dc, controller.Bc]) @ S_root,
        deviation=jnp.concatenate([controller.Dc @ plant.C + K, controller.Cc], axis=1),
        at_once=(controller.Dc + K @ L) @ S_root,
        M=M,
    )


@eqx.filter_jit
def _gap(policy: AbstractLinearPolicy, plant: LQG, horizon: int, ends: bool) -> Array:
    return _gap_by_root(policy, plant, horizon, ends)


@eqx.filter_custom_jvp
def _gap_by_root(policy: AbstractLinearPolicy, plant: LQG, horizon: int, ends: bool) -> Array:
    def step(root: Array, joint: _Joint) -> tuple[Array, Array]:
        after = jnp.concatenate([joint.transition @ root, joint.noise], axis=1)
        deviation = jnp.concatenate([joint.deviation @ root, joint.at_once], axis=1)
        return jnp.linalg.qr(after.T, mode="r").T, jnp.sum(deviation * (joint.M @ deviation))

    return _sum_excess(step, policy, plant, horizon, ends)


@_gap_by_root.def_jvp
def _gap_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    # Where Pi is singular its triangular root has no derivative; Pi itself always has one. A derivative is
    # of first order in the deviation, and keeps its digits in this form too.
    def step(Pi: Array, joint: _Joint) -> tuple[Array, Array]:
        after = joint.transition @ Pi @ joint.transition.T + joint.noise @ joint.noise.T
        covariance = joint.deviation @ Pi @ joint.deviation.T + joint.at_once @ joint.at_once.T
        return after, jnp.sum(joint.M * covariance)

    return eqx.filter_jvp(functools.partial(_sum_excess, step), primals, tangents)


def _sum_excess(
    step: Callable[[Array, _Joint], tuple[Array, Array]],
    policy: AbstractLinearPolicy,
    plant: LQG,
    horizon: int,
    ends: bool,
) -> Array:
    reference = reference_of(plant, horizon=horizon, ends=ends)

    def joint_step(moment: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        time, *at = now
        return step(moment, _join(policy.at(time), plant, *at))

    first = jnp.zeros_like(close_loop(policy.at(0), plant).transition)
    steps = (jnp.arange(horizon + 1), reference.K, reference.M, reference.L, reference.S_root)
    return jnp.sum(jax.lax.scan(joint_step, first, steps)[1])
