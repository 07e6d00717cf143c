"""Batches: pytrees whose arrays have a leading axis.

Rows are taken and batches are joined on the host: an index or a new size is no reason to compile a program.
"""

from collections.abc import Callable
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
    rows = np.asarray(rows)
    return jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)[rows]), batch)


def join(batches: list[Batch]) -> Batch:
    """Batches one after the other."""
    if not is_concrete(batches):
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *batches)
    return jax.tree.map(lambda *leaves: jax.device_put(np.concatenate(leaves)), *batches)


def map_in_chunks(function: Callable[[Batch], Answer], batch: Batch) -> Answer:
    """Apply a mapped and jitted function to a batch of any size, compiled for few sizes only."""
    total = len(jax.tree.leaves(batch)[0])
    size = chunk_size(total)
    source = np.minimum(np.arange(-(-total // size) * size), total - 1)
    answers = [function(take(batch, rows)) for rows in source.reshape(-1, size)]
    return take(join(answers), np.arange(total))


def chunk_size(total: int) -> int:
    """1, 64 or 1024: batches are of any size, compiled programs of few."""
    return 1 if total <= 1 else 64 if total <= FEW else 1024
