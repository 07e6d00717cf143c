"""Rows of a batch, taken on the host: an index or a new size is no reason to compile a program."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lqgap.linalg.arguments import is_concrete

Batch = TypeVar("Batch")


def take(batch: Batch, rows: Any) -> Batch:
    """The row of a number, or the rows of a list, of every array of a pytree."""
    if not is_concrete((batch, rows)):
        return jax.tree.map(lambda leaf: leaf[rows], batch)
    rows = np.asarray(rows)
    return jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)[rows]), batch)


def join(batches: list[Batch]) -> Batch:
    """Batches one after the other."""
    if not is_concrete(batches):
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *batches)
    return jax.tree.map(lambda *leaves: jax.device_put(np.concatenate(leaves)), *batches)
