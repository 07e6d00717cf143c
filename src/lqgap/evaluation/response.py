"""What a set-point and a load do to a loop, without noise.

    y_t = C x_t ,   u_t = policy(y_t) towards reference_t ,   x_{t+1} = A x_t + B (u_t + load_t) ,   x_0 = 0

The policy is told nothing of the load.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import ArrayLike, read_array, read_indices, require_shape
from lqgap.evaluation.arguments import read_horizon, read_systems
from lqgap.policies import AbstractPolicy
from lqgap.policies.target import aim
from lqgap.simulators.finite import Members
from lqgap.systems import LQG
from lqgap.systems.setpoints import Rest


class Response(eqx.Module):
    """Outputs and inputs of every plant, over time."""

    y: Float[Array, "*member time output"]
    u: Float[Array, "*member time input"]


def respond(
    policy: AbstractPolicy,
    plants: Members,
    *,
    references: ArrayLike,
    follow: Sequence[int] = (0,),
    loads: ArrayLike | None = None,
) -> Response:
    """The response of one plant or every plant of a class to references and loads.

    Args:
        references: where the outputs that are followed ought to be; a row for each step.
        follow: numbers of these outputs.
        loads: what is added to the inputs; a row for each step, none if left out. Of plants in velocity form,
            whose inputs are changes, it is the change of the load.
    """
    references = read_array("references", references, num_axes=2)
    last_step = read_horizon(policy, len(references) - 1)
    follow = read_indices("follow", follow, below=policy.num_outputs)
    loads = np.zeros((last_step + 1, policy.num_inputs)) if loads is None else loads
    loads = read_array("loads", loads, num_axes=2)
    for name, signal, size in (("references", references, len(follow)), ("loads", loads, policy.num_inputs)):
        require_shape(name, signal, (last_step + 1, size), why=f"a row of {size} for each step")
    rest = jax.tree.map(jnp.asarray, policy.rest(follow))
    return _respond(policy, read_systems(policy, plants), rest, references, loads)


@eqx.filter_jit
def _respond(policy: AbstractPolicy, systems: LQG, rest: Rest, references: Array, loads: Array) -> Response:
    memory = aim(policy.init(jax.random.key(0)), rest, jnp.zeros_like(references[0]))

    def step(
        plant: LQG, carry: tuple[Any, Array, Array], now: tuple[Array, Array]
    ) -> tuple[Any, tuple[Array, Array]]:
        (memory, x, u_last), (reference, load) = carry, now
        y = plant.C @ x
        memory, u = policy.step(aim(memory, rest, reference), y, u_last)
        return (memory, plant.A @ x + plant.B @ (u + load), u), (y, u)

    def run(plant: LQG) -> Response:
        start = (memory, jnp.zeros_like(plant.A[0]), jnp.zeros_like(plant.B[0]))
        y, u = jax.lax.scan(lambda carry, now: step(plant, carry, now), start, (references, loads))[1]
        return Response(y=y, u=u)

    return jax.vmap(run)(systems)
