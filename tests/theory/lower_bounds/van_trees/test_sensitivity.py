import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import directional_difference
from varied_plants import SIZES, read_record, varied_branch

from lqgap.theory.lower_bounds.van_trees.sensitivity import sensitivity_of

HORIZON = 3


@eqx.filter_jit
def reading_at(branch, theta, y, u, ends):
    return read_record(branch.plant(theta), y, u, ends=ends)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_the_state_follows_a_record_and_its_derivatives(size, ends):
    """Any record will do: here one that no plant is likely to make."""
    inputs, outputs = size
    branch, theta = varied_branch(*size), jnp.array([0.3, -0.4])
    rng = np.random.default_rng(inputs + 7 * outputs)
    y, u = rng.normal(size=(HORIZON + 1, outputs)), rng.normal(size=(HORIZON + 1, inputs))
    now = reading_at(branch, theta, y, u, ends)
    slopes = [  # by parameter; the rule's error is of order 3e-4^4 and rounding of order 1e-16 / 3e-4
        directional_difference(
            lambda point: np.concatenate(
                [np.ravel(leaf) for leaf in reading_at(branch, point, y, u, ends)[:4]]
            ),
            (theta,),
            (jnp.eye(2)[k],),
        )
        for k in range(2)
    ]
    system = sensitivity_of(branch.plant, theta, horizon=HORIZON, ends=ends)
    found = follow(system, now, u)
    for k in range(2):
        np.testing.assert_allclose(found[k], slopes[k], rtol=1e-8, atol=2e-9)
    np.testing.assert_allclose(system.root.mT @ system.root, now.M, rtol=1e-9)


def follow(system, now, u):
    """Score, d_k x, d_k of predictions and d_k u* by the system's matrices, a row for each parameter."""
    x, steps = np.asarray(now.x), len(u)
    p, q = system.num_outputs, system.gamma.shape[1]
    n = now.predicted.shape[1]
    zeta = np.zeros(system.F.shape[-1])
    score, moved, predictions, best = np.zeros(q), [], [], []
    for t in range(steps * p):
        h, j = divmod(t, p)
        nu, gamma = system.N[t] @ zeta, system.gamma[t]
        score = score + nu * x[h, j] + gamma * (x[h, j] ** 2 - 1)
        moved.append(-(nu + gamma * x[h, j]))
        if j == 0:
            np.testing.assert_allclose(zeta[:n], now.predicted[h], rtol=1e-8, atol=1e-10)
            predictions.append(zeta[n : (q + 1) * n].reshape(q, n))
        after = system.F[t] @ zeta + system.G[t] * x[h, j]
        if j == p - 1:
            psi = system.Y[h] @ zeta + system.y[h] * x[h, j]
            best.append(psi @ np.linalg.inv(system.root[h]).T)
            after = after + system.E[h] @ system.root[h] @ (u[h] - now.best[h])
        zeta = np.asarray(after)
    parts = (np.stack(each, axis=1).reshape(q, -1) for each in (moved, predictions, best))
    return np.concatenate([score[:, None], *parts], axis=1)
