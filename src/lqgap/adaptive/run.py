"""An adaptive algorithm on a plant, step by step, with an account of what it did.

The plant runs in innovations form, and regret is taken by the identity of `evaluation.regret`, which holds in
expectation for every policy. Steps run in compiled blocks, whose full account is thinned before the next:
memory does not grow with the horizon, except for the trace.
"""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from lqgap.adaptive.trace import StepRecord, Trace, TraceBuilder
from lqgap.adaptive.truth import read_plants, read_truth
from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.state import VTRMemory
from lqgap.arguments import IntLike, KeysLike, read_count, read_keys
from lqgap.batches import batch_of_one, take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.noise import standard_normal
from lqgap.evaluation.regret import StationaryReference
from lqgap.linalg import quadratic
from lqgap.progress import track
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, steady_predict

BLOCK = 512  # steps that run at a time; the noise depends on it


class RunState(eqx.Module):
    """Of plant and algorithm together."""

    memory: VTRMemory
    predicted: Float[Array, " state"]
    u_last: Float[Array, " input"]
    excess: Float[Array, ""]
    excess_cost: Float[Array, ""]  # sum (c - J)
    transient: Float[Array, ""]
    is_inside: Bool[Array, ""]


def run(
    algorithm: LQGVTR,
    plant: LQG,
    *,
    horizon: IntLike | None = None,
    key: PRNGKeyArray,
    truth: Any = None,
    num_points: IntLike = 1_000,
) -> Trace:
    """Let the algorithm control a plant over steps 0..horizon.

    Args:
        truth: the parameters of the plant, or its number among the members, if the trace is to say whether
            the truth is in the sets; if left out, a member that equals the plant is looked for.
        num_points: how many steps the trace is thinned to, about.
    """
    return run_many(algorithm, plant, horizon=horizon, keys=[key], truth=truth, num_points=num_points)[0]


def run_many(
    algorithm: LQGVTR,
    plants: Members,
    *,
    horizon: IntLike | None = None,
    keys: KeysLike,
    truth: Any = None,
    num_points: IntLike = 1_000,
) -> list[Trace]:
    """Independent runs, one for each key, side by side.

    Args:
        plants: one plant for all runs, or a batch with one for each.
        keys: an array of keys, as `jax.random.split` makes, or a list.
        truth: as in `run`, for all runs or a row for each.
    """
    if not isinstance(algorithm, LQGVTR):
        raise InvalidArgumentError(f"algorithm is a {type(algorithm).__name__}, expected an LQGVTR")
    last = algorithm.horizon if horizon is None else horizon
    last = read_count("horizon", last, least=0, most=algorithm.horizon)
    keys = read_keys(keys)
    num_points = read_count("num_points", num_points, least=1, most=1_000_000)
    real = read_plants(plants, count=len(keys))
    shares = read_truth(algorithm, real, truth, count=len(keys))
    account = TraceBuilder(
        algorithm.warnings(),
        last=last,
        every=max(1, (last + 1) // num_points),
        count=len(keys),
        is_known=shares is not None,
    )
    is_alone = len(keys) == 1
    state = _start(algorithm, real, keys, is_alone)
    _block(algorithm, real, shares, keys, state, jnp.asarray(0), is_alone)  # compiles
    with track("adapt", total=last + 1) as advance:
        start = time.perf_counter()
        for first in range(0, last + 1, BLOCK):
            state, steps = _block(algorithm, real, shares, keys, state, jnp.asarray(first), is_alone)
            account.add(first, jax.tree.map(np.asarray, steps), time.perf_counter() - start)
            advance(min(BLOCK, last + 1 - first))
    return account.traces()


@eqx.filter_jit
def _start(algorithm: LQGVTR, plants: StationaryReference, keys: Array, is_alone: bool) -> RunState:
    def of_run(real: StationaryReference, key: Array) -> RunState:
        # Side by side both branches of a condition are computed: a buffer would save nothing.
        memory = algorithm.init(key, buffer_size=None if is_alone else 0)
        zero = jnp.asarray(0.0)
        return RunState(
            memory=memory,
            predicted=jnp.zeros_like(real.plant.A[0]),
            u_last=jnp.zeros_like(real.plant.B[0]),
            excess=zero,
            excess_cost=zero,
            transient=zero,
            is_inside=jnp.asarray(True),
        )

    # Weakly typed scalars would become strongly typed after the first block and trigger a recompilation.
    return jax.tree.map(
        lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), jax.vmap(of_run)(plants, keys)
    )


@eqx.filter_jit
def _block(
    algorithm: LQGVTR,
    plants: StationaryReference,
    shares: Array | None,
    keys: Array,
    states: RunState,
    first: Array,
    is_alone: bool,
) -> tuple[RunState, StepRecord]:
    def of_run(
        real: StationaryReference, share: Array | None, key: Array, state: RunState
    ) -> tuple[RunState, StepRecord]:
        shape = (BLOCK, real.plant.num_outputs)
        normals = standard_normal(jax.random.fold_in(key, first), shape, jnp.float64)

        def step(state: RunState, normal: Array, *, skip_flush: bool = False) -> tuple[RunState, StepRecord]:
            return _step(algorithm, real, share, state, normal, skip_flush=skip_flush)

        if not is_alone:
            return jax.lax.scan(step, state, normals)
        return _scan_lazily(step, lambda state: algorithm.may_switch(state.memory), state, normals)

    if is_alone:
        return batch_of_one(of_run(*take((plants, shares, keys, states), 0)))
    if algorithm.refinement is not None:
        return jax.lax.map(lambda run: of_run(*run), (plants, shares, keys, states))
    return jax.vmap(of_run, in_axes=(0, None if shares is None else 0, 0, 0))(plants, shares, keys, states)


def _scan_lazily(
    step: Callable[..., tuple[RunState, StepRecord]],
    may_switch: Callable[[RunState], Array],
    state: RunState,
    normals: Array,
) -> tuple[RunState, StepRecord]:
    """What `lax.scan` does, with steps without a flush in an inner loop that does not carry the N^2 sums.

    `lax.cond` inside a loop copies its operands at every iteration; here only steps that flush the buffer do.
    """
    length = len(normals)
    one = jax.eval_shape(lambda state: step(state, normals[0])[1], state)
    blank = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), one)

    def write(steps: StepRecord, now: Array, done: StepRecord) -> StepRecord:
        return jax.tree.map(lambda rows, row: rows.at[now].set(row), steps, done)

    def until_flush(carry: tuple[Array, RunState, StepRecord]) -> tuple[Array, RunState, StepRecord]:
        now, state, steps = carry
        sums = _sums(state)

        def skip_flush(carry: tuple[Array, RunState, StepRecord]) -> Array:
            return (carry[0] < length) & ~may_switch(_with_sums(carry[1], sums))

        def take(carry: tuple[Array, RunState, StepRecord]) -> tuple[Array, RunState, StepRecord]:
            now, small, steps = carry
            state, done = step(_with_sums(small, sums), normals[now], skip_flush=True)
            return now + 1, _with_sums(state, (None, None)), write(steps, now, done)

        now, small, steps = jax.lax.while_loop(
            skip_flush, take, (now, _with_sums(state, (None, None)), steps)
        )

        def flush(carry: tuple[Array, RunState, StepRecord]) -> tuple[Array, RunState, StepRecord]:
            now, state, steps = carry
            state, done = step(state, normals[now])
            return now + 1, state, write(steps, now, done)

        return jax.lax.cond(now < length, flush, lambda carry: carry, (now, _with_sums(small, sums), steps))

    start = (jnp.asarray(0), state, blank)
    _, state, steps = jax.lax.while_loop(lambda carry: carry[0] < length, until_flush, start)
    return state, steps


def _sums(state: RunState) -> tuple[Any, Any]:
    return state.memory.statistics.kept, state.memory.statistics.new


def _with_sums(state: RunState, sums: tuple[Any, Any]) -> RunState:
    return eqx.tree_at(_sums, state, sums, is_leaf=lambda leaf: leaf is None)


def _step(
    algorithm: LQGVTR,
    real: StationaryReference,
    share: Array | None,
    state: RunState,
    normal: Array,
    *,
    skip_flush: bool,
) -> tuple[RunState, StepRecord]:
    optimum, now = real.optimum, state.memory.time
    seen = real.emit(now, state.predicted, normal)
    memory, u, info = algorithm.step(state.memory, seen.y, state.u_last, skip_flush=skip_flush)
    predicted = steady_predict(real.plant, seen.xhat, u)
    excess = state.excess + quadratic(u + optimum.K @ seen.xhat, optimum.M)
    cost = quadratic(seen.y, real.plant.Q) + quadratic(u, real.plant.R)
    transient = state.transient + real.drift(now)
    is_inside = state.is_inside
    if share is not None and not skip_flush:
        is_inside = jax.lax.cond(
            info.is_switch, lambda: algorithm.covers(memory, share), lambda: state.is_inside
        )
    state = RunState(memory, predicted, u, excess, state.excess_cost + cost - optimum.J, transient, is_inside)
    regret = real.biases[0] + excess + transient - real.bias_after(now, predicted)
    return state, StepRecord(info, regret, state.excess_cost, excess, is_inside)
