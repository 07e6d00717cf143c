"""Regret against the optimal average cost, E sum_{t=0}^{H} (c_t - J), by the Bellman equation.

With h(xhat, y) = xhat' zeta xhat + y'Qy the bias of the stationary optimum, xhat the exact filter of the
plant, mu = xhat_{H+1|H} and j_t = tr(zeta L_t S_t L_t') + tr(Q S_t), which tends to J,

    E sum (c_t - J) = first - last + E sum ||u_t + K xhat_{t|t}||^2_M + transient ,
    first = E h_0 = j_0 ,   last = E h_{H+1} = E mu'P mu + j_{H+1} ,   transient = sum_{t=1}^{H+1} (j_t - J) .

This holds for every policy and every S0. From S0 = Sigma the transient is zero. Of a cost of states, c_t has
what the filter expects of it, of which tr(Qx Sigma_{t|t}) joins the transient.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import IntLike, read_count, read_key
from lqgap.batches import in_turn
from lqgap.evaluation.arguments import read_horizon, read_systems
from lqgap.evaluation.estimate import AbstractEstimate, have_light_tails
from lqgap.evaluation.monte_carlo import MAX_ROLLOUTS, block_size, draw_normals, rollout_keys, sum_rollouts
from lqgap.evaluation.reference import Emission, Reference, begin, emit, excess
from lqgap.linalg import quadratic
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum, bias_matrix, require_converged, solve
from lqgap.systems.kalman import plan_filter
from lqgap.systems.optimum import solve_members


class RegretEstimate(AbstractEstimate):
    """The regret of every member and the terms it is made of, as far as rollouts tell."""

    mean: Float[np.ndarray, " member"]
    stderr: Float[np.ndarray, " member"]
    totals: Float[np.ndarray, "member rollout"]
    per_step: Float[np.ndarray, "member time"]  # ||u_t + K xhat_{t|t}||^2_M, on average
    first: Float[np.ndarray, " member"]
    last: Float[np.ndarray, " member"]
    transient: Float[np.ndarray, " member"]
    value: Float[np.ndarray, " member"]  # (H + 1) J
    num_rollouts: int = eqx.field(static=True)
    has_light_tail: bool = eqx.field(static=True)


class StationaryReference(eqx.Module):
    """A plant with its optimum, its exact filter, biases j_t and tr(Qx Sigma_{t|t}); the last entry stays."""

    plant: LQG
    optimum: Optimum
    L: Float[Array, "time state output"]
    S_root: Float[Array, "time output output"]
    biases: Float[Array, " time"]
    unseen: Float[Array, " time"]

    def emit(
        self, time: Int[Array, ""], predicted: Float[Array, " state"], normal: Float[Array, " output"]
    ) -> Emission:
        """What the plant shows at a step, and what its filter then knows."""
        now = self._entry(time)
        return emit(self.plant.C, self.L[now], self.S_root[now], predicted, normal)

    def bias_after(self, time: Any, predicted: Float[Array, " state"]) -> Float[Array, ""]:
        """E h_{t+1} given mu = xhat_{t+1|t}: mu'P mu + j_{t+1}."""
        return quadratic(predicted, self.optimum.P) + self.biases[self._entry(time + 1)]

    def drift(self, time: Int[Array, ""]) -> Float[Array, ""]:
        """j_{t+1} - J: what step t adds to the transient."""
        return self.biases[self._entry(time + 1)] + self.unseen[self._entry(time)] - self.optimum.J

    def transient(self, num_steps: int) -> Float[Array, ""]:
        """The sum of the drifts of the first steps."""
        return jnp.sum(jax.vmap(self.drift)(jnp.arange(num_steps)))

    def cost(self, time: Any, seen: Emission, u: Float[Array, " input"]) -> Float[Array, ""]:
        """What step t costs, as far as its filter can tell."""
        return self.plant.cost(seen.xhat, seen.y, u) + self.unseen[self._entry(time)]

    def over(self, num_steps: int) -> Reference:
        """The reference of this many steps, with the gains of the long run."""
        K, M = (jnp.broadcast_to(gain, (num_steps, *gain.shape)) for gain in (self.optimum.K, self.optimum.M))
        A, B, C = self.plant.A, self.plant.B, self.plant.C
        value = num_steps * self.optimum.J
        return Reference(A, B, C, K, M, self.L[:num_steps], self.S_root[:num_steps], value)

    def _entry(self, time: Any) -> Array:
        return jnp.minimum(time, len(self.biases) - 1)


def regret(
    policy: AbstractPolicy,
    members: Members,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    num_rollouts: IntLike = 256,
    limits: LimitsLike = None,
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
    plants = _stationary_references(systems, horizon)
    sums = sum_rollouts(
        lambda indices, is_counted: _block(policy, plants, allowed, key, indices, is_counted),
        label="regret",
        block=block_size(len(systems.A), horizon + 1, systems.num_outputs, count),
        num_rollouts=count,
    )
    *_, per_step, last = sums.parts
    return RegretEstimate(
        mean=sums.mean,
        stderr=sums.stderr,
        totals=sums.totals,
        per_step=per_step / count,
        first=np.asarray(plants.biases[:, 0]),
        last=last / count,
        transient=np.asarray(_transients(plants)),
        value=np.asarray((horizon + 1) * plants.optimum.J),
        num_rollouts=count,
        has_light_tail=have_light_tails(sums.totals),
    )


def stationary_reference(
    plant: LQG, optimum: Optimum, L: Float[Array, "time state output"], S: Float[Array, "time output output"]
) -> StationaryReference:
    """From the plant's optimum and the gains and innovation covariances of its exact filter."""
    zeta = bias_matrix(optimum, plant)
    biases = jnp.einsum("ij,tjk,tkl,til->t", zeta, L, S, L) + jnp.einsum("ij,tij->t", plant.Q, S)
    unseen = jnp.zeros_like(biases) if plant.Qx is None else _unseen_costs(plant, plant.Qx, L)
    return StationaryReference(plant, optimum, L, jnp.linalg.cholesky(S), biases, unseen)


def _unseen_costs(plant: LQG, Qx: Array, L: Array) -> Array:
    """tr(Qx Sigma_{t|t}) of the filter with these gains."""

    def step(Sigma: Array, gain: Array) -> tuple[Array, Array]:
        keep = jnp.eye(len(Sigma)) - gain @ plant.C
        filtered = keep @ Sigma @ keep.T + gain @ plant.V @ gain.T
        return plant.A @ filtered @ plant.A.T + plant.W, jnp.sum(Qx * filtered)

    return jax.lax.scan(step, plant.S0, L)[1]


@eqx.filter_jit
def _transients(plants: StationaryReference) -> Array:
    return jax.vmap(lambda member: member.transient(len(member.biases) - 1))(plants)


@eqx.filter_jit
def _stationary_references(systems: LQG, horizon: int) -> StationaryReference:
    """Of every member, for steps 0..horizon + 1."""

    def of_member(plant: LQG) -> StationaryReference:
        optimum = solve(plant)
        plan = plan_filter(in_turn(optimum.J, plant), num_steps=horizon + 2)
        return stationary_reference(plant, optimum, plan.L, plan.S)

    return jax.vmap(of_member)(systems)


@eqx.filter_jit
def _block(
    policy: AbstractPolicy,
    plants: StationaryReference,
    limits: Limits,
    key: Array,
    indices: Array,
    is_counted: Array,
) -> tuple[Array, ...]:
    """The regrets of a block of rollouts, and sums of the excess at every step and of last biases."""
    keys_noise, keys_policy = rollout_keys(key, indices)
    num_steps = plants.L.shape[1] - 1
    normals = draw_normals(keys_noise, num_steps=num_steps, like=plants.plant)

    def of_member(member: StationaryReference) -> tuple[Array, ...]:
        reference = member.over(num_steps)
        run = jax.vmap(
            lambda normal, k: excess(policy, reference, normal, begin(policy, reference, k), limits)
        )(normals, keys_policy)
        transient = member.transient(num_steps)
        last = jax.vmap(lambda mu: member.bias_after(num_steps - 1, mu))(run.end.predicted)
        total = member.biases[0] + jnp.sum(run.per_step, axis=1) + transient - last
        total = jnp.where(jnp.isfinite(total), total, jnp.inf)  # a loop that diverged: inf - inf
        steps = jnp.where(jnp.isnan(run.per_step), jnp.inf, run.per_step)
        return (
            jnp.where(is_counted, total, 0),
            jnp.sum(jnp.where(is_counted[:, None], steps, 0), axis=0),
            jnp.sum(jnp.where(is_counted, last, 0)),
        )

    return jax.vmap(of_member)(plants)
