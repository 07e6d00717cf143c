"""The plants that an adaptive algorithm is run on, and where they lie among its members."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.evidence import ExactFilters
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.regret import StationaryReference, stationary_reference
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG


def read_plants(plants: Members, *, count: int) -> StationaryReference:
    """A plant for each run: one for all, or a batch of as many."""
    systems = Finite.of(plants, name="plants").systems
    if len(systems.A) not in (1, count):
        raise InvalidArgumentError(
            f"plants has {len(systems.A)} of them, expected one, or one for each of {count} runs"
        )
    optima = Finite(systems).optima()
    filters = ExactFilters(systems, optima)
    real = _real_plants(systems, optima, filters.L, filters.law.S)
    rows = np.arange(count) if len(systems.A) == count else np.zeros(count, dtype=int)
    return take(real, rows)


def read_truth(algorithm: LQGVTR, plants: StationaryReference, truth: Any, *, count: int) -> Array | None:
    """How much of each member the truth is, for every run; None if it is not known."""
    members = algorithm.members
    if truth is None:
        found = [_equal_member(members.systems, take(plants.plant, i)) for i in range(count)]
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


_real_plants = jax.jit(jax.vmap(stationary_reference, in_axes=(0, 0, 1, 1)))
