"""What of a plant can be learned from its inputs and outputs, as one vector.

The steady input/output law depends on the plant through its predictor Markov parameters and its innovation
covariance alone (not through the coordinates of its state, and if p < n not even through the split of noise
between states):

    invariants = ( C F, C Abar F, .., C Abar^{k-1} F,  C B, C Abar B, .., C Abar^{k-1} B,  S )

Two plants of n states with the same 2n Markov parameters have all of them in common. The distance of two
plants is the Euclidean distance of these vectors: the error of a one-step prediction per unit of past data.
"""

from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.linalg.rows import join, take
from lqgap.systems import LQG, Optimum, predictor_markov_parameters, solve

FEW = 256  # plants, for which several chunks of 64 are worth less than another program to compile
Answer = TypeVar("Answer")


def invariants(plant: LQG, *, length: int) -> Float[Array, " feature"]:
    """The vector of one plant, NaN where it has no stationary optimum."""
    optimum = solve(plant)
    vector = invariants_of(optimum, plant, length=length)
    return jnp.where(optimum.converged, vector, jnp.nan)


def invariants_of(optimum: Optimum, plant: LQG, *, length: int) -> Float[Array, " feature"]:
    """The vector of one plant whose optimum is known."""
    of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=length)
    return jnp.concatenate([of_outputs.ravel(), of_inputs.ravel(), optimum.S.ravel()])


def map_in_chunks(function: Callable[[LQG], Answer], systems: LQG) -> Answer:
    """Apply a mapped and jitted function to a batch of any size, compiled for few sizes only."""
    total = len(systems.A)
    size = chunk_size(total)
    source = np.minimum(np.arange(-(-total // size) * size), total - 1)
    answers = [function(take(systems, rows)) for rows in source.reshape(-1, size)]
    return take(join(answers), np.arange(total))


def chunk_size(total: int) -> int:
    """1, 64 or 1024: batches are of any size, compiled programs of few."""
    return 1 if total <= 1 else 64 if total <= FEW else 1024
