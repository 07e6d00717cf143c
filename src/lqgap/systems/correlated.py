"""Process and measurement noise that are correlated, E w_t z_t' = G, in the form of all other plants.

Measurement noise becomes part of the state (x, z), which loses nothing:

    x_+ = A x + G V^-1 z + B u + w' ,   z_+ ~ N(0, V) ,   y = C x + z ,   w' ~ N(0, W - G V^-1 G') .

What y_t tells of z_t it tells of w_t, and the optimal input u_t = -K (xhat, zhat)_{t|t} makes use of it. An
innovations model, as identification gives it, is the case in which nothing else moves the state:

    x_+ = A x + B u + F e ,   y = C x + e ,   e ~ N(0, S) :      G = F S ,  V = S ,  W = F S F' .
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array

from lqgap.arguments import MatrixLike, is_concrete, read_array, require_shape
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.linalg.psd import solve_psd, sqrt_psd, symmetrize
from lqgap.systems.lqg import LQG, require_noise

ROUNDING = 1e-10  # of W: by how much the covariance of w' may seem to be negative


def correlate_noise(plant: LQG, G: MatrixLike) -> LQG:
    """The plant with E w_t z_t' = G, of n + p states; V must be positive definite."""
    require_noise(plant, what="a correlation with measurement noise")
    G = read_array("G", G, num_axes=2)
    sizes = plant.num_states, plant.num_outputs
    require_shape("G", G, sizes, why="it has a row for each state and a column for each output")
    gain = solve_psd(plant.V, G.T).T
    rest = symmetrize(plant.W - gain @ G.T)
    if is_concrete(rest):
        _require_covariance(np.asarray(rest), np.asarray(plant.W))
    root, least = sqrt_psd(rest), -ROUNDING * jnp.max(jnp.abs(plant.W))
    is_noise = (
        jnp.linalg.eigvalsh(rest)[0] >= least
    )  # where values are not known yet, NaN says that it is none
    return _with_noise_state(plant, gain, jnp.where(is_noise, root @ root.T, jnp.nan))


def innovations_plant(
    A: MatrixLike, B: MatrixLike, C: MatrixLike, *, F: MatrixLike, S: MatrixLike, **weights: MatrixLike
) -> LQG:
    """The plant x_+ = Ax + Bu + Fe, y = Cx + e with e ~ N(0, S), of n + p states.

    Args:
        weights: Q, R, Qx, N and S0, as `LQG` takes them.
    """
    if taken := sorted({"W", "V"} & weights.keys()):
        raise InvalidArgumentError(
            f"{taken[0]} is given, and in an innovations model F and S say all of noise"
        )
    plant = LQG(A, B, C, V=S, **weights)
    F = read_array("F", F, num_axes=2)
    sizes = plant.num_states, plant.num_outputs
    require_shape("F", F, sizes, why="it has a row for each state and a column for each output")
    require_noise(plant, what="an innovations model")
    return _with_noise_state(plant, F, jnp.zeros_like(plant.A))


def _with_noise_state(plant: LQG, gain: Array, W: Array) -> LQG:
    outputs, inputs = plant.num_outputs, plant.num_inputs
    nothing = jnp.zeros((outputs, plant.num_states + outputs))
    return LQG(
        jnp.concatenate([jnp.concatenate([plant.A, gain], axis=1), nothing]),
        jnp.concatenate([plant.B, jnp.zeros((outputs, inputs))]),
        jnp.concatenate([plant.C, jnp.eye(outputs)], axis=1),
        Q=plant.Q,
        R=plant.R,
        W=jsl.block_diag(W, plant.V),
        V=jnp.zeros_like(plant.V),
        S0=jsl.block_diag(plant.S0, plant.V),
        **plant.state_cost_of_more(outputs),
    )


def _require_covariance(rest: np.ndarray, W: np.ndarray) -> None:
    smallest = np.linalg.eigvalsh(rest)[0]
    if smallest < -ROUNDING * max(np.max(np.abs(W)), np.finfo(float).tiny):
        raise InvalidSystemError(
            f"G is too large: no noise has the covariances W, V and G (W - G V^-1 G' has the eigenvalue "
            f"{smallest:.3g}, expected none below zero)"
        )
