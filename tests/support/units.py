"""The same plants in other units: coordinates of the state, scales of inputs and outputs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from lqgap.simulators import Finite, ParameterBox
from lqgap.systems import change_coordinates, zero_order_hold

SI = (1.0, 1.0, 1.0)
SCALED = (100.0, 0.2, 2.0)


def servo(scale):
    """A position servo: angle, speed and current in units of the given size; volts in, radians out."""

    def build(inertia, friction):
        resistance, inductance, torque = 1.0, 5e-4, 0.05
        inertia, friction = 1e-4 * inertia, 1e-4 * friction
        A = jnp.zeros((3, 3)).at[0, 1].set(1.0)
        A = A.at[1].set(jnp.stack([jnp.zeros(()), -friction / inertia, torque / inertia]))
        A = A.at[2].set(jnp.asarray([0.0, -torque / inductance, -resistance / inductance]))
        A, B = zero_order_hold(A, jnp.asarray([[0.0], [0.0], [1 / inductance]]), dt=0.01)
        plant = lg.LQG(
            A,
            B,
            jnp.asarray([[1.0, 0.0, 0.0]]),
            Q=[[1e4]],
            R=[[1e-2]],
            W=jnp.diag(jnp.asarray([1e-10, 1e-2, 1e-4])),
            V=[[8.2e-7]],
            S0=jnp.diag(jnp.asarray([2.25e-3, 1e-2, 1e-4])),
        )
        return change_coordinates(plant, jnp.diag(jnp.asarray(scale)))

    return ParameterBox(build, {"inertia": (0.5, 2.0), "friction": (0.1, 1.0)})


def random_coordinates(seed, num_states, *, decades):
    """A rotation, then coordinates in units that differ by so many powers of ten."""
    random = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(random.normal(size=(num_states, num_states)))
    return (
        10 ** (decades * (random.permutation(num_states) / max(num_states - 1, 1) - 0.5))[:, None] * rotation
    )


def in_other_coordinates(members, T):
    """The members with the state T x."""
    return Finite(_in_coordinates(members.systems, jnp.asarray(T)), members.parameters, names=members.names)


def in_other_units(members, *, inputs, outputs):
    """The members with inputs and outputs multiplied by vectors; the cost is the same."""
    systems = _in_units(members.systems, jnp.asarray(inputs), jnp.asarray(outputs))
    return Finite(systems, members.parameters, names=members.names)


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None))
def _in_coordinates(plant, T):
    return change_coordinates(plant, T)


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None, None))
def _in_units(plant, inputs, outputs):
    to_inputs, to_outputs = jnp.diag(1 / inputs), jnp.diag(1 / outputs)
    up = jnp.diag(outputs)
    return lg.LQG(
        plant.A,
        plant.B @ to_inputs,
        up @ plant.C,
        Q=to_outputs @ plant.Q @ to_outputs,
        R=to_inputs @ plant.R @ to_inputs,
        W=plant.W,
        V=up @ plant.V @ up,
        S0=plant.S0,
    )
