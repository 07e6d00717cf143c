"""A policy on a plant, step by step, with an account of what it did; a learner also tells what it believes.

The plant runs in innovations form, and regret is taken by the identity of `evaluation.regret`, which holds in
expectation for every policy. Steps run in compiled blocks, whose full account is thinned before the next:
memory does not grow with the horizon, except for the trace.

A run has diverged, and ends, where y'Qy > 1e6 J_0, with J_0 the average cost without control (the optimal one
if there is none), or where u is not a number: its sums stay as they are, and u is zero from there on.
"""

import time
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.learner import AbstractLearner, nothing_told
from lqgap.adaptive.trace import StepRecord, Trace, TraceBuilder
from lqgap.adaptive.truth import RealPlant, read_plants, read_truth
from lqgap.arguments import IntLike, KeysLike, read_count, read_keys
from lqgap.batches import batch_of_one, take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import require_fit
from lqgap.evaluation.noise import standard_normal
from lqgap.linalg import quadratic
from lqgap.policies import AbstractPolicy, Saturated
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.policies.policy import require_policy
from lqgap.progress import track
from lqgap.simulators.finite import Members
from lqgap.states import strongly_typed
from lqgap.systems import LQG, steady_predict
from lqgap.systems.losses import without_losses

BLOCK = 512  # steps that run at a time; the noise depends on it
MAX_STEPS = 100_000_000


class RunState(eqx.Module):
    """Of plant and policy together."""

    time: Int[Array, ""]
    memory: Any
    predicted: Float[Array, " state"]
    u_last: Float[Array, " input"]  # as applied
    excess: Float[Array, ""]
    excess_cost: Float[Array, ""]  # sum (c - J)
    transient: Float[Array, ""]
    is_inside: Bool[Array, ""]
    has_diverged: Bool[Array, ""]


def run(
    policy: AbstractPolicy,
    plant: LQG,
    *,
    horizon: IntLike | None = None,
    key: PRNGKeyArray,
    truth: Any = None,
    num_points: IntLike = 1_000,
    limits: LimitsLike = None,
) -> Trace:
    """Let a policy control a plant over steps 0..horizon.

    Args:
        policy: a learner, or any other, of which there is less to tell.
        horizon: the last step, by default that of the policy.
        truth: the parameters of the plant, or its number among the members, if the trace is to say whether
            the truth is in the sets; if left out, a member that equals the plant is looked for.
        num_points: how many steps the trace is thinned to, about.
        limits: (low, high) of inputs, numbers or vectors: the plant receives inputs clipped to them.
    """
    return run_many(
        policy, plant, horizon=horizon, keys=[key], truth=truth, num_points=num_points, limits=limits
    )[0]


def run_many(
    policy: AbstractPolicy,
    plants: Members,
    *,
    horizon: IntLike | None = None,
    keys: KeysLike,
    truth: Any = None,
    num_points: IntLike = 1_000,
    limits: LimitsLike = None,
) -> list[Trace]:
    """Independent runs, one for each key, side by side.

    Args:
        plants: one plant for all runs, or a batch with one for each.
        keys: an array of keys, as `jax.random.split` makes, or a list.
        truth: as in `run`, for all runs or a row for each.
    """
    if isinstance(policy, Saturated) and limits is None:  # the policy inside may have more to tell
        policy, limits = policy.policy, policy.limits.as_given
    last, keys = _read_last(require_policy("policy", policy), horizon), read_keys(keys)
    num_points = read_count("num_points", num_points, least=1, most=1_000_000)
    real = read_plants(plants, count=len(keys))
    require_fit(policy, real.reference.plant)
    allowed = read_limits(limits, num_inputs=policy.num_inputs)
    members = policy.members if isinstance(policy, AbstractLearner) else None
    where = None if members is None else read_truth(members, real, truth, count=len(keys))
    account = TraceBuilder(
        policy, last=last, every=max(1, (last + 1) // num_points), count=len(keys), is_known=where is not None
    )
    is_alone = len(keys) == 1
    state = _start(policy, real, keys)
    _block(policy, real, where, allowed, keys, state, jnp.asarray(0), is_alone)  # compiles
    with track("adapt", total=last + 1) as advance:
        start = time.perf_counter()
        for first in range(0, last + 1, BLOCK):
            state, steps = _block(policy, real, where, allowed, keys, state, jnp.asarray(first), is_alone)
            account.add(first, jax.tree.map(np.asarray, steps), time.perf_counter() - start)
            advance(min(BLOCK, last + 1 - first))
    return account.traces()


def _read_last(policy: AbstractPolicy, horizon: IntLike | None) -> int:
    if horizon is None and policy.horizon is None:
        raise InvalidArgumentError("horizon is missing: the policy goes on for ever")
    most = MAX_STEPS if policy.horizon is None else policy.horizon
    return read_count("horizon", policy.horizon if horizon is None else horizon, least=0, most=most)


@eqx.filter_jit
def _start(policy: AbstractPolicy, plants: RealPlant, keys: Array) -> RunState:
    def of_run(real: RealPlant, key: Array) -> RunState:
        zero = jnp.asarray(0.0)
        return RunState(
            time=jnp.asarray(0),
            memory=without_losses(policy.init(key)),
            predicted=jnp.zeros_like(real.reference.plant.A[0]),
            u_last=jnp.zeros_like(real.reference.plant.B[0]),
            excess=zero,
            excess_cost=zero,
            transient=zero,
            is_inside=jnp.asarray(True),
            has_diverged=jnp.asarray(False),
        )

    return strongly_typed(jax.vmap(of_run)(plants, keys))


@eqx.filter_jit
def _block(
    policy: AbstractPolicy,
    plants: RealPlant,
    truths: Array | None,
    limits: Limits,
    keys: Array,
    states: RunState,
    first: Array,
    is_alone: bool,
) -> tuple[RunState, StepRecord]:
    def of_run(
        real: RealPlant, truth: Array | None, key: Array, state: RunState
    ) -> tuple[RunState, StepRecord]:
        shape = (BLOCK, real.reference.plant.num_outputs)
        normals = standard_normal(jax.random.fold_in(key, first), shape, jnp.float64)

        def step(state: RunState, normal: Array) -> tuple[RunState, StepRecord]:
            return _step(policy, real, truth, limits, state, normal)

        return jax.lax.scan(step, state, normals)

    if is_alone:
        return batch_of_one(of_run(*take((plants, truths, keys, states), 0)))
    return jax.vmap(of_run, in_axes=(0, None if truths is None else 0, 0, 0))(plants, truths, keys, states)


def _step(
    policy: AbstractPolicy,
    real: RealPlant,
    truth: Int[Array, ""] | None,
    limits: Limits,
    state: RunState,
    normal: Array,
) -> tuple[RunState, StepRecord]:
    reference, now = real.reference, state.time
    plant, optimum = reference.plant, reference.optimum
    seen = reference.emit(now, state.predicted, normal)
    memory, u = policy.step(state.memory, seen.y, state.u_last)
    output_cost = quadratic(seen.y, plant.Q)
    has_diverged = state.has_diverged | ~jnp.all(jnp.isfinite(u)) | ~(output_cost <= real.ceiling)
    u = jnp.where(has_diverged, 0.0, limits.clip(u, state.u_last))
    told = policy.snapshot(memory) if isinstance(policy, AbstractLearner) else nothing_told()
    after = RunState(
        time=now + 1,
        memory=memory,
        predicted=steady_predict(plant, seen.xhat, u),
        u_last=u,
        excess=state.excess + quadratic(u + optimum.K @ seen.xhat, optimum.M),
        excess_cost=state.excess_cost + reference.cost(now, seen, u) - optimum.J,
        transient=state.transient + reference.drift(now),
        is_inside=state.is_inside if truth is None else told.plausible[truth],
        has_diverged=has_diverged,
    )
    ended = replace(state, time=now + 1, memory=memory, u_last=u, has_diverged=has_diverged)
    after = jax.tree.map(lambda end, new: jnp.where(has_diverged, end, new), ended, after)
    regret = reference.biases[0] + after.excess + after.transient - reference.bias_after(now, after.predicted)
    return after, StepRecord(told, regret, after.excess_cost, after.excess, after.is_inside, has_diverged)
