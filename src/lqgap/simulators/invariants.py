"""What of a plant can be learned from its inputs and outputs, as one vector.

The steady input/output law depends on the plant through its predictor Markov parameters and its innovation
covariance alone (not through the coordinates of its state, and if p < n not even through the split of noise
between states):

    invariants = ( C F, C Abar F, .., C Abar^{k-1} F,  C B, C Abar B, .., C Abar^{k-1} B,  S )

Two plants of n states with the same 2n Markov parameters have all of them in common. The distance of two
plants is the Euclidean distance of these vectors: the error of a one-step prediction per unit of past data.
Units are those of one plant of the class: a standard deviation of its measurement noise, V_ii^1/2, and the
input that costs as much as this noise, (tr(QV) / (m R_jj))^1/2. Where V is singular C W C' + V stands for it,
and a cost of states adds tr(Qx W).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import is_definite
from lqgap.systems import LQG, Optimum, predictor_markov_parameters, solve


def invariants(plant: LQG, *, length: int) -> Float[Array, " feature"]:
    """The vector of one plant, NaN where it has no stationary optimum."""
    optimum = solve(plant)
    vector = invariants_of(optimum, plant, length=length)
    return jnp.where(optimum.converged, vector, jnp.nan)


def unit_weights(plant: LQG, *, length: int) -> Float[np.ndarray, " feature"]:
    """What turns a vector of raw numbers into units of a plant."""
    C, Q, R, W, V = (np.asarray(X) for X in (plant.C, plant.Q, plant.R, plant.W, plant.V))
    V = V if is_definite(V, strictly=True) else C @ W @ C.T + V
    cost = np.trace(Q @ V) + (0.0 if plant.Qx is None else np.trace(np.asarray(plant.Qx) @ W))
    outputs, inputs = np.sqrt(np.diag(V)), np.sqrt(cost / (len(R) * np.diag(R)))
    inputs = np.where(inputs > 0, inputs, 1.0)
    blocks = (outputs[None, :] / outputs[:, None], inputs[None, :] / outputs[:, None])
    once = 1 / np.outer(outputs, outputs)
    return np.concatenate([*(np.tile(block.ravel(), length) for block in blocks), once.ravel()])


def invariants_of(optimum: Optimum, plant: LQG, *, length: int) -> Float[Array, " feature"]:
    """The vector of one plant whose optimum is known."""
    of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=length)
    return jnp.concatenate([of_outputs.ravel(), of_inputs.ravel(), optimum.S.ravel()])
