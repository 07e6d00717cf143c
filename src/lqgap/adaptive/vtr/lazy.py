"""A scan in which steps that need no N^2 sums do not carry them.

`lax.cond` inside a loop copies its operands at every iteration. So steps between two exact scores run in an
inner loop without the sums, and only a step that takes the score has them.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array


def scan_lazily(
    step: Callable[..., tuple[Any, Any]], may_switch: Callable[[Any], Array], state: Any, inputs: Array
) -> tuple[Any, Any]:
    """What `lax.scan` does; `step(state, input, skip_flush=True)` is one that leaves the sums alone."""
    length = len(inputs)
    one = jax.eval_shape(lambda state: step(state, inputs[0])[1], state)
    blank = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), one)

    def write(steps: Any, now: Array, done: Any) -> Any:
        return jax.tree.map(lambda rows, row: rows.at[now].set(row), steps, done)

    def until_flush(carry: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        now, state, steps = carry
        sums = _sums(state)

        def is_light(carry: tuple[Array, Any, Any]) -> Array:
            return (carry[0] < length) & ~may_switch(_with_sums(carry[1], sums))

        def take(carry: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
            now, small, steps = carry
            state, done = step(_with_sums(small, sums), inputs[now], skip_flush=True)
            return now + 1, _with_sums(state, (None, None)), write(steps, now, done)

        now, small, steps = jax.lax.while_loop(is_light, take, (now, _with_sums(state, (None, None)), steps))

        def flush(carry: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
            now, state, steps = carry
            state, done = step(state, inputs[now])
            return now + 1, state, write(steps, now, done)

        return jax.lax.cond(now < length, flush, lambda carry: carry, (now, _with_sums(small, sums), steps))

    start = (jnp.asarray(0), state, blank)
    _, state, steps = jax.lax.while_loop(lambda carry: carry[0] < length, until_flush, start)
    return state, steps


def _sums(state: Any) -> tuple[Any, Any]:
    statistics = state.memory.targets.statistics
    return statistics.kept, statistics.new


def _with_sums(state: Any, sums: tuple[Any, Any]) -> Any:
    return eqx.tree_at(_sums, state, sums, is_leaf=lambda leaf: leaf is None)
