"""Regret against the optimal average cost, E sum_{t=0}^{H} (c_t - J), by the Bellman equation.

With h(xhat, y) = xhat' zeta xhat + y'Qy the bias of the stationary optimum, xhat the exact filter of the
plant, mu = xhat_{H+1|H} and j_t = tr(zeta (Sigma_{t|t-1} - Sigma_{t|t})) + tr(Q S_t), which tends to J,

    E sum (c_t - J) = first - last + E sum ||u_t + K xhat_{t|t}||^2_M + transient ,
    first = E h_0 = j_0 ,   last = E h_{H+1} = E mu'P mu + j_{H+1} ,   transient = sum_{t=1}^{H+1} (j_t - J) .

This holds for every policy and every S0. From S0 = Sigma the transient is zero.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import read_count, read_key
from lqgap.evaluation.arguments import read_horizon, read_systems, rollout_keys
from lqgap.evaluation.gap import MAX_ROLLOUTS, block_size, draw_normals, standard_error
from lqgap.evaluation.reference import Reference, excess
from lqgap.linalg import quadratic
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, read_limits
from lqgap.progress import track
from lqgap.simulators.finite import solve_members
from lqgap.systems import LQG, Belief, bias_matrix, correct, predict, prior, require_converged, solve


class RegretEstimate(eqx.Module):
    """The regret of every member and the terms it is made of; what is chance has a standard error."""

    mean: Float[np.ndarray, " member"]
    stderr: Float[np.ndarray, " member"]
    per_step: Float[np.ndarray, "member time"]  # ||u_t + K xhat_{t|t}||^2_M, on average
    first: Float[np.ndarray, " member"]
    last: Float[np.ndarray, " member"]
    transient: Float[np.ndarray, " member"]
    num_rollouts: int = eqx.field(static=True)


def regret(
    policy: AbstractPolicy,
    members: Any,
    *,
    horizon: Any,
    key: PRNGKeyArray,
    num_rollouts: Any = 256,
    limits: Any = None,
) -> RegretEstimate:
    """Estimate the regret of steps 0..horizon, in double precision.

    Args:
        members: a finite class, a batched LQG, or one LQG.
        num_rollouts: how many for each member.
        limits: (low, high), numbers or vectors: plants receive inputs clipped to them.
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    systems = read_systems(policy, members)
    count = read_count("num_rollouts", num_rollouts, least=2, most=MAX_ROLLOUTS)
    allowed = read_limits(limits, num_inputs=policy.num_inputs)
    require_converged(solve_members(systems), systems)
    steady = _steady(systems, horizon)
    block = block_size(len(systems.A), horizon, systems.num_outputs, count)
    sums = [np.zeros(1)] * 4
    with track("regret", total=count) as advance:
        for first in range(0, count, block):
            indices = jnp.arange(first, first + block)
            added = _block(policy, steady, allowed, key, indices, indices < count)
            sums = [old + np.asarray(new) for old, new in zip(sums, added, strict=True)]
            advance(min(block, count - first))
    total, squares, per_step, last = sums
    return RegretEstimate(
        mean=total / count,
        stderr=standard_error(total, squares, count),
        per_step=per_step / count,
        first=np.asarray(steady.first),
        last=last / count,
        transient=np.asarray(steady.transient),
        num_rollouts=count,
    )


class _Steady(eqx.Module):
    """The stationary optimum as a reference, and the exact terms of the regret."""

    reference: Reference
    P: Array
    first: Array
    last_noise: Array
    transient: Array


@eqx.filter_jit
def _steady(systems: LQG, horizon: int) -> _Steady:
    return jax.vmap(lambda plant: _steady_of(plant, horizon))(systems)


def _steady_of(plant: LQG, horizon: int) -> _Steady:
    optimum = solve(plant)
    # One loop after the other: XLA's thread pool may deadlock on concurrent ones.
    plant, optimum = jax.lax.optimization_barrier((plant, optimum))
    zeta = bias_matrix(optimum, plant)
    zero_output, zero_input = jnp.zeros_like(plant.C[:, 0]), jnp.zeros_like(plant.B[0])

    def step(belief: Belief, _: None) -> tuple[Belief, tuple[Array, Array, Array]]:
        correction = correct(plant, belief, zero_output)
        bias = jnp.sum(zeta * (belief.cov - correction.belief.cov)) + jnp.sum(plant.Q * correction.S)
        return predict(plant, correction.belief, zero_input), (
            correction.gain,
            jnp.linalg.cholesky(correction.S),
            bias,
        )

    _, (L, S_root, biases) = jax.lax.scan(step, prior(plant), length=horizon + 2)
    num_steps = horizon + 1
    return _Steady(
        reference=Reference(
            A=plant.A,
            B=plant.B,
            C=plant.C,
            K=jnp.broadcast_to(optimum.K, (num_steps, *optimum.K.shape)),
            M=jnp.broadcast_to(optimum.M, (num_steps, *optimum.M.shape)),
            L=L[:-1],
            S_root=S_root[:-1],
            value=num_steps * optimum.J,
        ),
        P=optimum.P,
        first=biases[0],
        last_noise=biases[-1],
        transient=jnp.sum(biases[1:] - optimum.J),
    )


@eqx.filter_jit
def _block(
    policy: AbstractPolicy, steady: _Steady, limits: Limits, key: Array, indices: Array, counted: Array
) -> tuple[Array, ...]:
    """Sums over a block of rollouts: of regrets, their squares, the excess at every step, last biases."""
    keys_noise, keys_policy = rollout_keys(key, indices)
    num_steps = steady.reference.K.shape[1]
    normals = jax.vmap(lambda k: draw_normals(k, num_steps=num_steps, like=steady.reference))(keys_noise)

    def of_member(member: _Steady) -> tuple[Array, ...]:
        run = jax.vmap(lambda normal, k: excess(policy, member.reference, normal, k, limits))(
            normals, keys_policy
        )
        last = jax.vmap(lambda mu: quadratic(mu, member.P))(run.predicted) + member.last_noise
        total = member.first - last + jnp.sum(run.per_step, axis=1) + member.transient
        total = jnp.where(jnp.isfinite(total), total, jnp.inf)  # a loop that diverged: inf - inf
        steps = jnp.where(jnp.isnan(run.per_step), jnp.inf, run.per_step)
        return (
            jnp.sum(jnp.where(counted, total, 0)),
            jnp.sum(jnp.where(counted, total**2, 0)),
            jnp.sum(jnp.where(counted[:, None], steps, 0), axis=0),
            jnp.sum(jnp.where(counted, last, 0)),
        )

    return jax.vmap(of_member)(steady)
