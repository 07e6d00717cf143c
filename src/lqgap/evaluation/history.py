"""How long a memory must be, and the price of clipping the history.

A belief clipped to the last `length` steps predicts the next observation with the error
C Abar^length A xhat_{t-length}, whose size in standard deviations of the innovation is

    error = ( E || S^-1/2 C Abar^length A xhat ||^2 )^1/2 ,     E xhat xhat' = X = (A-BK) X (A-BK)' + L S L' ,

whatever the coordinates; and the policy that acts on it costs more than the optimum by what
`exact_average_cost` says.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import FloatLike, read_positive
from lqgap.errors import NotConvergedError
from lqgap.evaluation.exact import exact_average_cost
from lqgap.policies import ClippedHistory
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum, solve
from lqgap.systems.optimum import belief_covariance
from lqgap.systems.window import MAX_LENGTH, clipping_errors

MAX_ORDER = 400  # of the clipped policy as a linear controller, whose cost is a Lyapunov equation


class MemoryPlan(eqx.Module):
    """The length that suffices for all members, and what clipping costs each of them."""

    length: int = eqx.field(static=True)
    error: Float[np.ndarray, " member"]  # of the prediction, in standard deviations of the innovation
    price: Float[np.ndarray, " member"]  # J of the clipped policy over the optimal J, minus one


def plan_memory(members: Members, *, tolerance: FloatLike = 1e-3) -> MemoryPlan:
    """The smallest length whose prediction errors are below the tolerance, and its measured price.

    Args:
        members: a finite class, a batched LQG, or one LQG.
        tolerance: in standard deviations of the innovation.
    """
    members = Finite.of(members)
    tolerance = read_positive("tolerance", tolerance)
    optima = members.optima()
    errors = np.asarray(_errors(optima, members.systems))
    enough = np.all(errors <= tolerance, axis=0)
    if not enough.any():
        raise NotConvergedError(
            f"no memory of up to {MAX_LENGTH} steps is enough: the filter of member "
            f"{int(np.argmax(errors[:, -1]))} has errors that decay too slowly"
        )
    length = int(np.argmax(enough)) + 1
    order = length * (members.systems.num_inputs + members.systems.num_outputs)
    if order > MAX_ORDER:
        raise NotConvergedError(
            f"a memory of {length} steps is needed, too long to price (a controller with {order} states): "
            f"allow a larger tolerance, or use a filter, whose memory does not end"
        )
    prices = _prices(members.systems, length)
    return MemoryPlan(length=length, error=errors[:, length - 1], price=np.asarray(prices))


@jax.jit
def _errors(optima: Optimum, systems: LQG) -> Array:
    """The error of every member for lengths 1..MAX_LENGTH."""
    return jax.vmap(_errors_of)(optima, systems)


def _errors_of(optimum: Optimum, plant: LQG) -> Array:
    X = belief_covariance(optimum, plant)
    return clipping_errors(optimum, plant, lambda error: jnp.sqrt(jnp.trace(error @ X @ error.T)))


@eqx.filter_jit
def _prices(systems: LQG, length: int) -> Array:
    def of_member(plant: LQG) -> Array:
        clipped = ClippedHistory.from_plant(plant, length=length)
        return exact_average_cost(clipped, plant) / solve(plant).J - 1

    return jax.lax.map(of_member, systems)
