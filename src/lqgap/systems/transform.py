"""The same plant written differently: other state coordinates, delayed inputs."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, MatrixLike, is_concrete, read_array, read_count, require_shape
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.systems.lqg import LQG


def change_coordinates(plant: LQG, T: MatrixLike) -> LQG:
    """The plant in the state T x; costs, outputs and Markov parameters stay the same."""
    T = read_array("T", T, num_axes=2)
    require_shape("T", T, plant.A.shape, why="it maps states to states")
    if is_concrete(T) and not np.linalg.cond(np.asarray(T)) < 1e12:
        raise InvalidSystemError(
            "T is singular or nearly so (condition number above 1e12): it must be invertible"
        )
    inverse = jnp.linalg.inv(T)
    return LQG(
        T @ plant.A @ inverse,
        T @ plant.B,
        plant.C @ inverse,
        Q=plant.Q,
        R=plant.R,
        W=_congruence(T, plant.W),
        V=plant.V,
        S0=_congruence(T, plant.S0),
        Qx=None if plant.Qx is None else _congruence(inverse.T, plant.Qx),
        N=None if plant.N is None else inverse.T @ plant.N,
    )


def delay_input(plant: LQG, steps: IntLike, *, longest: IntLike | None = None) -> LQG:
    """The plant whose inputs take effect `steps` steps later, with state (x, u_{t-1}, u_{t-2}, ...).

    Args:
        longest: keep this many past inputs (default `steps`), so that plants of different delay
            have one size. Past inputs beyond the delay are stable and have no effect.
    """
    steps = read_count("steps", steps, least=0)
    longest = steps if longest is None else read_count("longest", longest, least=0)
    if longest < steps:
        raise InvalidArgumentError(f"longest is {longest}, expected at least steps = {steps}")
    return with_past_inputs(plant, jnp.zeros((longest + 1, *plant.B.shape)).at[steps].set(plant.B))


def with_past_inputs(plant: LQG, gains: Float[Array, "lag state input"]) -> LQG:
    """The plant with x_{t+1} = A x_t + sum_j gains[j] u_{t-j} + w_t, and state (x, u_{t-1}, u_{t-2}, ...)."""
    (lags, n, m), p = gains.shape, plant.num_outputs
    size = n + (lags - 1) * m
    past = jnp.swapaxes(gains[1:], 0, 1).reshape(n, size - n)
    return LQG(
        jnp.eye(size, k=-m).at[: n + m].set(0).at[:n].set(jnp.concatenate([plant.A, past], axis=1)),
        jnp.eye(size, m, k=-n).at[:n].set(gains[0]),
        jnp.zeros((p, size)).at[:, :n].set(plant.C),
        Q=plant.Q,
        R=plant.R,
        W=_embed(plant.W, size),
        V=plant.V,
        S0=_embed(plant.S0, size),
        **plant.state_cost_of_more(size - n),
    )


def _congruence(T: Array, X: Array) -> Array:
    return T @ X @ T.T


def _embed(X: Array, size: int) -> Array:
    return jnp.zeros((size, size)).at[: len(X), : len(X)].set(X)
