"""The plants that a policy is run on, and which member of its class each of them is."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.exact import average_excess
from lqgap.evaluation.regret import StationaryReference, stationary_reference
from lqgap.policies import Zero
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum
from lqgap.systems.settling import MOST, settle_filters

FAR = 1_000.0  # times as large as without control: outputs of a run that has diverged


class RealPlant(eqx.Module):
    """A plant with its optimum, and the largest y'Qy of a run that has not diverged."""

    reference: StationaryReference
    ceiling: Float[Array, ""]


def read_plants(plants: Members, *, count: int) -> RealPlant:
    """A plant for each run: one for all, or a batch of as many."""
    systems = Finite.of(plants, name="plants").systems
    if len(systems.A) not in (1, count):
        raise InvalidArgumentError(
            f"plants has {len(systems.A)} of them, expected one, or one for each of {count} runs"
        )
    optima = Finite(systems).optima()
    gains = settle_filters(systems, optima)
    if not gains.is_settled:
        raise InvalidArgumentError(f"some plant's filter has not settled after {MOST} steps")
    real = _real_plants(systems, optima, gains.L, gains.S)
    rows = np.arange(count) if len(systems.A) == count else np.zeros(count, dtype=int)
    return take(real, rows)


def read_truth(members: Finite, plants: RealPlant, truth: Any, *, count: int) -> Array | None:
    """The number of the member that is, or is nearest to, the truth of every run; None if it is not known."""
    if truth is None:
        found = [_equal_member(members.systems, take(plants.reference.plant, i)) for i in range(count)]
        if any(index is None for index in found):
            return None
        truth = np.asarray(found)
    truth, shape = np.asarray(truth), (count, len(members.names))
    if (
        truth.dtype.kind in "iu"
        and truth.shape in ((), (count,))
        and np.all((truth >= 0) & (truth < len(members)))
    ):
        return jnp.asarray(np.broadcast_to(truth, (count,)))
    if truth.dtype.kind != "f" or truth.shape not in ((), shape[1:], shape) or not np.all(np.isfinite(truth)):
        raise InvalidArgumentError(
            f"truth is {truth.tolist()!r}, expected the number of one of the {len(members)} members of the "
            f"learner, or real values of {', '.join(members.names)} for all runs or each of {count}"
        )
    theta = np.broadcast_to(truth, shape)
    parameters = np.asarray(members.parameters)
    width = np.maximum(np.ptp(parameters, axis=0), 1e-300)
    apart = np.sum(((theta[:, None] - parameters[None]) / width) ** 2, axis=2)
    return jnp.asarray(np.argmin(apart, axis=1))


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
    nothing = Zero(num_inputs=systems.num_inputs, num_outputs=systems.num_outputs).at(0)

    def of_plant(plant: LQG, optimum: Optimum, L: Array, S: Array) -> RealPlant:
        extra = average_excess(nothing, plant, optimum)
        typical = optimum.J + jnp.where(jnp.isfinite(extra), extra, 0.0)
        return RealPlant(stationary_reference(plant, optimum, L, S), FAR**2 * typical)

    return jax.vmap(of_plant, in_axes=(0, 0, 1, 1))(systems, optima, L, S)
