"""Loads that act on a plant: unknown ones, which the controller learns, and measured ones.

An unknown load d drifts, and adds to the inputs. With v = u + d of the step before as a state, and the change
of u as the input (velocity form), it is part of an ordinary problem, whose cost weighs changes:

    x_{t+1} = A x_t + B (v_t + du_t) + w_t ,     v_{t+1} = v_t + du_t + e_t ,     e ~ N(0, drift^2) ,

so that its optimal controller lets no constant load move the outputs: an integrator comes out of it.

A measured disturbance d is a state that no input moves, and an output that costs nothing:

    x_{t+1} = A x_t + B u_t + E d_t + w_t ,      d_{t+1} = decay d_t + e_t ,      y' = (y, d + noise) .

Since it is expected to decay, a constant one leaves an error of the order of 1 - decay, also beside loads.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array

from lqgap.arguments import (
    ArrayLike,
    FloatLike,
    MatrixLike,
    is_concrete,
    read_array,
    read_indices,
    read_numbers,
    require_shape,
)
from lqgap.errors import InvalidArgumentError, NotDetectableError
from lqgap.systems.lqg import LQG
from lqgap.systems.setpoints import has_full_rank


def velocity_form(
    plant: LQG,
    *,
    load: ArrayLike,
    drift: ArrayLike,
    R: MatrixLike | None = None,
    inputs: Sequence[int] | None = None,
) -> LQG:
    """The plant with unknown loads on its inputs, which are given by their changes.

    Args:
        load: standard deviation of the loads at the start, in units of the inputs: a number, or one for each.
        drift: standard deviation of their change in a step; the larger, the faster a load is learned.
        R: weighs changes of inputs, where it is not that of the plant.
        inputs: numbers of those with a load, all if left out; others stay as they are.
    """
    count = plant.num_inputs
    chosen = list(range(count) if inputs is None else read_indices("inputs", inputs, below=count))
    if plant.N is not None:
        raise InvalidArgumentError(
            "the plant weighs products of states and inputs, 2 x'N u, and in velocity form inputs are changes"
        )
    n, p, count = plant.num_states, plant.num_outputs, len(chosen)
    _require_visible(plant, chosen)
    sizes = [_read_deviations(name, value, count) for name, value in (("load", load), ("drift", drift))]
    return LQG(
        jnp.block([[plant.A, plant.B[:, np.array(chosen)]], [jnp.zeros((count, n)), jnp.eye(count)]]),
        jnp.concatenate([plant.B, np.eye(plant.num_inputs)[chosen]]),
        jnp.concatenate([plant.C, jnp.zeros((p, count))], axis=1),
        Q=plant.Q,
        R=plant.R if R is None else R,
        W=jsl.block_diag(plant.W, jnp.diag(sizes[1] ** 2)),
        V=plant.V,
        S0=jsl.block_diag(plant.S0, jnp.diag(sizes[0] ** 2)),
        **plant.state_cost_of_more(count),
    )


def measure_disturbance(
    plant: LQG, E: MatrixLike, *, size: ArrayLike, noise: ArrayLike, decay: FloatLike = 0.9999
) -> LQG:
    """The plant with measured disturbances E d, which are its last outputs and cost nothing.

    Args:
        E: how they move the state; a column for each.
        size: their standard deviation in the long run, a number or one for each.
        noise: standard deviation of their sensors.
        decay: correlation of a disturbance with itself one step before; below one.
    """
    E = read_array("E", E, num_axes=2)
    n, count = plant.num_states, E.shape[1]
    require_shape("E", E, (n, count), why=f"the plant has {n} states (rows), one column a disturbance")
    decay = read_array("decay", decay, num_axes=0)
    if is_concrete(decay) and not 0 <= decay < 1:
        raise InvalidArgumentError(
            f"decay is {decay}, expected a number from 0 to below 1: no input can hold a disturbance that "
            f"wanders without end, and one that decays slowly is as good"
        )
    size, noise = (_read_deviations(name, value, count) for name, value in (("size", size), ("noise", noise)))
    return LQG(
        jnp.block([[plant.A, E], [jnp.zeros((count, n)), decay * jnp.eye(count)]]),
        jnp.concatenate([plant.B, jnp.zeros((count, plant.num_inputs))]),
        jsl.block_diag(plant.C, jnp.eye(count)),
        Q=jsl.block_diag(plant.Q, jnp.zeros((count, count))),
        R=plant.R,
        W=jsl.block_diag(plant.W, jnp.diag((1 - decay**2) * size**2)),
        V=jsl.block_diag(plant.V, jnp.diag(noise**2)),
        S0=jsl.block_diag(plant.S0, jnp.diag(size**2)),
        **plant.state_cost_of_more(count),
    )


def _read_deviations(name: str, value: ArrayLike, count: int) -> Array:
    numbers = jnp.ravel(jnp.asarray(read_numbers(name, value)))
    if len(numbers) not in (1, count) or (is_concrete(numbers) and not np.all(numbers > 0)):
        raise InvalidArgumentError(f"{name} is {value!r}, expected a positive number, or {count} of them")
    return jnp.broadcast_to(numbers, (count,))


def _require_visible(plant: LQG, inputs: list[int]) -> None:
    """Raise if a constant load on these inputs cannot be told from the outputs."""
    if not is_concrete(plant):
        return
    A, B, C = (np.asarray(matrix) for matrix in (plant.A, plant.B[:, np.array(inputs)], plant.C))
    at_rest = np.block([[A - np.eye(len(A)), B], [C, np.zeros((len(C), len(inputs)))]])
    if len(C) < len(inputs) or not has_full_rank(at_rest):
        raise NotDetectableError(
            f"constant loads on the inputs {inputs} cannot be told apart by {len(C)} outputs: there are more "
            f"loads than outputs, or the plant has a zero at one; name fewer by inputs="
        )
