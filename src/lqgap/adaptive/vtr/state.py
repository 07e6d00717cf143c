"""What LQG-VTR remembers from one step to the next, and what it tells of each."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.vtr.evidence import Evidence
from lqgap.adaptive.vtr.statistics import Statistics
from lqgap.systems import LQG, Optimum, ValueTarget, arx_matrix
from lqgap.systems.steady import steady_step
from lqgap.systems.window import clipping_error

RUNNING, LEFT_BALL, MISFIT = 0, 1, 2  # why control has passed to the fallback, if it has


class VTRModel(eqx.Module):
    """The model acted on, and its belief."""

    plant: LQG
    optimum: Optimum
    N: Float[Array, "output window"]
    clip_norm: Float[Array, ""]  # |S^-1/2 C Abar^length A|: what clipping leaves out of a prediction
    precision: Float[Array, "output output"]  # S^-1
    theta: Float[Array, " parameter"]
    xhat: Float[Array, " state"]

    def advance(self, y: Float[Array, " output"], u_last: Float[Array, " input"]) -> Float[Array, " state"]:
        """Its belief after another observation."""
        return steady_step(self.optimum, self.plant, self.xhat, u_last, y)


class VTRChoice(eqx.Module):
    """What a switch decided."""

    members: Bool[Array, " member"]  # the set
    estimate: Int[Array, ""]
    optimistic: Int[Array, ""]  # of the members
    theta_estimate: Float[Array, " parameter"]
    score: Float[Array, ""]  # that triggered it


class VTRMemory(eqx.Module):
    """What one step hands to the next."""

    time: Int[Array, ""]
    key: PRNGKeyArray
    xhat: Float[Array, "member state"]
    past_inputs: Float[Array, "lag input"]  # newest first
    past_outputs: Float[Array, "lag output"]
    since_loss: Int[Array, ""]  # steps since an observation was lost
    statistics: Statistics
    evidence: Evidence
    allowed: Bool[Array, " member"]  # U_1
    choice: VTRChoice
    model: VTRModel
    num_switches: Int[Array, ""]
    status: Int[Array, ""]
    has_sample: Bool[Array, ""]
    target: ValueTarget  # of the sample whose observation is yet to come
    predictions: Float[Array, " member"]
    weight: Float[Array, ""]
    increment: Float[Array, ""]  # of the score by this sample, at most
    fallback: Any


class VTRInfo(eqx.Module):
    """What happened in a step."""

    is_switch: Bool[Array, ""]
    status: Int[Array, ""]
    choice: VTRChoice
    theta: Float[Array, " parameter"]  # of the model acted on
    J: Float[Array, ""]  # of the model acted on
    clip_error: Float[Array, ""]  # of its prediction, in standard deviations of the innovation
    clip_bound: Float[Array, ""]
    misfit: Float[Array, ""]
    is_lost: Bool[Array, ""]


@eqx.filter_jit
def clip_models(optima: Optimum, systems: LQG, length: int) -> tuple[Array, Array]:
    """`clip_model` of every member."""
    return jax.vmap(lambda optimum, plant: clip_model(optimum, plant, length))(optima, systems)


def clip_model(optimum: Optimum, plant: LQG, length: int) -> tuple[Array, Array]:
    """N, and the norm of what it leaves out, in standard deviations of the innovation."""
    error = clipping_error(optimum, plant, length=length)
    return arx_matrix(optimum, plant, length=length), jnp.linalg.norm(error, 2)


def belief_from_window(optimum: Optimum, plant: LQG, outputs: Array, inputs: Array) -> Array:
    """xhat_{t|t} of a model that has not been running, from what is remembered (newest first)."""

    def step(xhat: Array, past: tuple[Array, Array]) -> tuple[Array, None]:
        y, u_last = past
        return steady_step(optimum, plant, xhat, u_last, y), None

    return jax.lax.scan(step, jnp.zeros_like(plant.A[0]), (outputs[::-1], inputs[::-1]))[0]
