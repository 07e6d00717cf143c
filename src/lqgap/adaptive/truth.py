"""The plant that an adaptive algorithm meets, and what is known of it by those who judge.

The plant runs in innovations form, from its exact filter (L_t, S_t), which has the same law of observations:
y = C xhat + e. With zeta = P - C'QC of its own optimum, the bias of step t is in the mean
j_t = tr(zeta L_t S_t L_t') + tr(Q S_t) beyond what the belief before it tells; j_t tends to J.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.evidence import ExactFilters
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import read_members
from lqgap.simulators import Finite
from lqgap.systems import LQG, Optimum, bias_matrix


class RealPlant(eqx.Module):
    """The real plant, its optimum, and what an exact filter of it knows."""

    system: LQG
    optimum: Optimum
    L: Float[Array, "time state output"]
    S_root: Float[Array, "time output output"]
    biases: Float[Array, " time"]  # j_t


def read_plants(plants: Any, *, count: int) -> RealPlant:
    """A plant for each run: one for all, or a batch of as many."""
    systems = read_members(plants)
    if len(systems.A) not in (1, count):
        raise InvalidArgumentError(
            f"plants has {len(systems.A)} of them, expected one, or one for each of {count} runs"
        )
    optima = Finite(systems).optima()
    filters = ExactFilters(systems, optima)
    real = _real_plants(systems, optima, filters.L, filters.law.S)
    rows = np.arange(count) if len(systems.A) == count else np.zeros(count, dtype=int)
    return take(real, rows)


def read_truth(algorithm: LQGVTR, plants: RealPlant, truth: Any, *, count: int) -> Array | None:
    """How much of each member the truth is, for every run; None if it is not known."""
    members = algorithm.members
    if truth is None:
        systems = plants.system
        found = [_equal_member(members.systems, take(systems, i)) for i in range(count)]
        if any(index is None for index in found):
            return None
        truth = np.asarray(found)
    truth = np.asarray(truth)
    if truth.dtype.kind in "iu":
        return jnp.eye(len(members))[jnp.asarray(np.broadcast_to(truth, (count,)))]
    theta = jnp.asarray(np.broadcast_to(truth, (count, len(members.names))), dtype=float)
    if algorithm.refinement is None:
        width = jnp.maximum(jnp.ptp(members.parameters, axis=0), 1e-300)
        apart = jnp.sum(((theta[:, None] - members.parameters[None]) / width[None, None]) ** 2, axis=2)
        return jnp.eye(len(members))[jnp.argmin(apart, axis=1)]
    return jax.lax.map(algorithm.refinement.shares, theta)


def _equal_member(systems: LQG, plant: LQG) -> int | None:
    same = np.ones(len(systems.A), dtype=bool)
    for name in ("A", "B", "C", "W", "V"):
        ours, theirs = np.asarray(getattr(systems, name)), np.asarray(getattr(plant, name))
        if ours.shape[1:] != theirs.shape:
            return None
        same &= np.all(ours == theirs, axis=(1, 2))
    return int(np.argmax(same)) if np.any(same) else None


@jax.jit
def _real_plants(systems: LQG, optima: Optimum, L: Array, S: Array) -> RealPlant:
    def of_plant(plant: LQG, optimum: Optimum, L: Array, S: Array) -> RealPlant:
        zeta = bias_matrix(optimum, plant)
        biases = jnp.einsum("ij,tjk,tkl,til->t", zeta, L, S, L) + jnp.einsum("ij,tij->t", plant.Q, S)
        return RealPlant(plant, optimum, L, jnp.linalg.cholesky(S), biases)

    return jax.vmap(of_plant, in_axes=(0, 0, 1, 1))(systems, optima, L, S)
