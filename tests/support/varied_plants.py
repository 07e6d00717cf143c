"""Families in which all matrices depend on the parameters, and a filter of their records written anew."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from random_systems import random_matrices

import lqgap as lg
from lqgap.simulators.building import make_branches
from lqgap.simulators.parameters import Parameter

SIZES = [(1, 1), (2, 1), (1, 2), (2, 2)]  # inputs, outputs
STATES, CHANGE = 2, 0.15


@functools.cache
def varied_branch(inputs, outputs, names=("first", "second")):
    """Parameters in [-1, 1], on which A, B, C and, by congruence, Q, R, W, V and S0 depend."""
    rng = np.random.default_rng(10 * inputs + outputs)
    matrices, weights = random_matrices(rng, states=STATES, inputs=inputs, outputs=outputs, radius=0.9)
    slopes = [rng.normal(size=(len(names), *matrix.shape)) for matrix in matrices]
    turns = {name: rng.normal(size=(len(names), *matrix.shape)) for name, matrix in weights.items()}

    def build(**values):
        theta = CHANGE * jnp.stack([jnp.asarray(values[name]) for name in names])
        bent = theta + theta**2
        A, B, C = (
            jnp.asarray(base) + jnp.tensordot(bent, slope, axes=1)
            for base, slope in zip(matrices, slopes, strict=True)
        )
        moved = {}
        for name, base in weights.items():
            turn = jnp.eye(len(base)) + jnp.tensordot(theta, turns[name], axes=1)
            moved[name] = turn @ base @ turn.T
        return lg.LQG(A, B, C, **moved)

    (branch,) = make_branches(build, tuple(Parameter(name, -1.0, 1.0) for name in names))
    return branch


class Reading(NamedTuple):
    """What a plant's own filter makes of a record: of every step, but for the density."""

    log_density: jax.Array
    x: jax.Array  # whitened innovations
    predicted: jax.Array
    best: jax.Array  # u*
    M: jax.Array


def read_record(plant, y, u, *, ends):
    """Filter and optimal inputs by the textbook's formulas, with inverses and loops."""
    best_gains, M = control(plant, len(y), ends=ends)
    xhat, Sigma = jnp.zeros(len(plant.A)), plant.S0
    log_density, rows = 0.0, []
    for K, y_now, u_now in zip(best_gains, y, u, strict=True):
        S = plant.C @ Sigma @ plant.C.T + plant.V
        T = jnp.linalg.cholesky(S)
        e = y_now - plant.C @ xhat
        x = jnp.linalg.inv(T) @ e
        log_density -= (e @ jnp.linalg.inv(S) @ e + jnp.log(jnp.linalg.det(2 * jnp.pi * S))) / 2
        L = Sigma @ plant.C.T @ jnp.linalg.inv(S)
        filtered = xhat + L @ e
        rows.append((x, xhat, -K @ filtered))
        xhat = plant.A @ filtered + plant.B @ u_now
        Sigma = plant.A @ (Sigma - L @ S @ L.T) @ plant.A.T + plant.W
    return Reading(log_density, *(jnp.stack(each) for each in zip(*rows, strict=True)), M)


def control(plant, steps, *, ends):
    """Gains and costs of deviations by dynamic programming; a task that goes on begins it far away."""
    Q = plant.C.T @ plant.Q @ plant.C

    def back(P):
        M = plant.R + plant.B.T @ P @ plant.B
        K = jnp.linalg.inv(M) @ plant.B.T @ P @ plant.A
        return Q + plant.A.T @ P @ plant.A - K.T @ M @ K, K, M

    P = jnp.zeros_like(Q)
    if not ends:
        P, _ = jax.lax.scan(lambda P, _: (back(P)[0], None), P, length=400)
    rows = []
    for _ in range(steps):
        P, K, M = back(P)
        rows.append((K, M))
    return tuple(jnp.stack(each) for each in zip(*rows[::-1], strict=True))
