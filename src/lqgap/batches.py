"""Batches: pytrees whose arrays have a leading axis.

Rows are taken and batches are joined on the host: an index or a new size is no reason to compile a program.
What a program does to a batch it must do in turn, where LAPACK or loops are in it (docs/decisions/0033).
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lqgap.arguments import is_concrete

FEW = 256  # rows, for which several chunks of 64 are worth less than another program to compile
Batch = TypeVar("Batch")
Answer = TypeVar("Answer")


def take(batch: Batch, rows: Any) -> Batch:
    """The row of a number, or the rows of a list, of every array of a pytree."""
    if not is_concrete((batch, rows)):
        return jax.tree.map(lambda leaf: leaf[rows], batch)
    return _on_host(lambda leaf: leaf[np.asarray(rows)], batch)


def batch_of_one(item: Batch) -> Batch:
    """The same pytree with a leading axis of length one."""
    if not is_concrete(item):
        return jax.tree.map(lambda leaf: leaf[None], item)
    return _on_host(lambda leaf: leaf[None], item)


def join(batches: list[Batch]) -> Batch:
    """Batches one after the other."""
    if not is_concrete(batches):
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *batches)
    return jax.tree.map(lambda *leaves: jax.device_put(np.concatenate(leaves)), *batches)


def map_in_chunks(function: Callable[[Batch], Answer], batch: Batch) -> Answer:
    """Apply a mapped and jitted function to a batch of any size, compiled for few sizes only."""
    total = len(jax.tree.leaves(batch)[0])
    answers = [function(take(batch, rows)) for rows in chunks(total, chunk_size(total))]
    return take(join(answers), np.arange(total))


def chunks(total: int, size: int) -> Iterator[np.ndarray]:
    """The numbers of all rows, this many at a time; the last one is repeated to fill the last chunk."""
    for start in range(0, total, size):
        yield np.minimum(np.arange(start, start + size), total - 1)


def chunk_size(total: int) -> int:
    """1, 64 or 1024: batches are of any size, compiled programs of few."""
    return 1 if total <= 1 else 64 if total <= FEW else 1024


def rarely(change: Callable[..., Batch], is_now: Any, batch: Batch, *given: Any) -> Batch:
    """`change(batch, *given)` where `is_now`; of many side by side only at steps where one of them needs it.

    Under `jax.vmap` a condition alone computes both branches at every step. All that varies must be given.
    """

    @jax.custom_batching.custom_vmap
    def changed(is_now: Any, batch: Batch, given: Any) -> Batch:
        return jax.lax.cond(is_now, lambda: change(batch, *given), lambda: batch)

    @changed.def_vmap
    def _(count: int, is_batched: Any, is_now: Any, batch: Batch, given: Any) -> tuple[Batch, Any]:
        def spread(leaf: Any, has_axis: bool) -> Any:
            return leaf if has_axis else jnp.broadcast_to(leaf, (count, *jnp.shape(leaf)))

        is_now, batch = jax.tree.map(spread, (is_now, batch), tuple(is_batched[:2]))
        axes = jax.tree.map(lambda has_axis: 0 if has_axis else None, is_batched[2])

        def change_some(batch: Batch, is_now: Any, given: Any) -> Batch:
            moved = jax.vmap(lambda one, its: change(one, *its), in_axes=(0, axes))(batch, given)
            return jax.tree.map(lambda new, old: jax.vmap(jnp.where)(is_now, new, old), moved, batch)

        found = rarely(change_some, jnp.any(is_now), batch, is_now, given)
        return found, jax.tree.map(lambda _: True, found)

    return changed(is_now, batch, given)


def in_turn(first: Any, then: Batch) -> Batch:
    """The second, once the first is known, for `jit`: two routines of LAPACK, or two loops, on batches.

    They wait for helpers from the pool of threads that they run on: two at a time on two cores wait for
    ever. The compiler's barrier is gone before it is decided what runs side by side; a number in use is not.
    """
    marks = [jnp.ravel(leaf)[0].astype(float) for leaf in jax.tree.leaves(first) if leaf.size]
    is_never = jax.lax.stop_gradient(sum(marks)) > jnp.inf
    return jax.tree.map(lambda leaf: jnp.where(is_never, jnp.zeros_like(leaf), leaf), then)


def _on_host(index_fn: Callable[[Any], Any], batch: Batch) -> Batch:
    """Index every leaf; NumPy arrays stay such, and random keys are indexed by JAX."""

    def of_leaf(leaf: Any) -> Any:
        is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        if is_key or isinstance(leaf, np.ndarray):
            return index_fn(leaf)
        return jax.device_put(index_fn(np.asarray(leaf)))

    return jax.tree.map(of_leaf, batch)
