"""The bound against the exact Bayes gap of its own prior, on plants with one state over three steps.

The last input of a task that ends does nothing, and the one before it is chosen best as the mean of all members' optimal
inputs; so the Bayes gap is a minimum over u_0 inside of an integral over y_0, of an integral over y_1.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation.gap import references_of
from lqgap.theory.lower_bounds.van_trees.bound import van_trees_bound

HORIZON, NODES = 2, 24
UNKNOWN = {  # with the least share of the Bayes gap that the bound must reach
    "input": (dict(B=(0.3, 1.5)), 0.85),
    "input, little": (dict(B=(0.8, 1.2)), 0.85),
    "dynamics": (dict(A=(0.4, 1.2)), 0.8),
    "output": (dict(C=(0.5, 2.0)), 0.75),
    "noise of outputs": (dict(V=(0.2, 3.0)), 0.75),
    "noise of outputs, little": (dict(V=(0.8, 1.2)), 0.85),
    "noise of the state": (dict(W=(0.2, 3.0)), 0.75),
}


def scalar(ranges):
    """All matrices are 1 but for A = 0.9; noise of the state is also that of the first one."""

    def build(**values):
        A, B, C, V, W = (
            jnp.reshape(jnp.asarray(values.get(name, default)), (1, 1))
            for name, default in (("A", 0.9), ("B", 1.0), ("C", 1.0), ("V", 1.0), ("W", 1.0))
        )
        return lg.LQG(A, B, C, V=V, W=W, S0=W)

    return lg.ParameterBox(build, ranges)


def exact_bayes_gap(family, prior):
    """A policy's value but for rounding: inputs are on a grid, integrals by the trapezoidal rule over normal densities."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = family.parameters[0].low, family.parameters[0].high
    members = family.members((low + (high - low) * (nodes + 1) / 2)[:, None])
    mass = weights * np.exp(jax.vmap(prior.log_density)(jnp.asarray(nodes)[:, None]))
    mass = mass / mass.sum()
    references = references_of(members.systems, horizon=HORIZON)
    A, B, C = (np.asarray(getattr(references, name))[:, 0, 0] for name in "ABC")
    K, M, L, T = (np.asarray(getattr(references, name))[:, :, 0, 0] for name in ("K", "M", "L", "S_root"))
    total = 0.0
    y0_grid = np.linspace(-8, 8, 81) * np.max(T[:, 0])
    for y0 in y0_grid:
        joint = mass * normal(y0, T[:, 0])
        xhat = L[:, 0] * y0
        best = -K[:, 0] * xhat
        u0 = np.linspace(best.min() - 0.5, best.max() + 0.5, 101)[:, None]
        now = ((u0 - best) ** 2) @ (joint * M[:, 0])
        predicted = A * xhat + B * u0  # input, member
        middle, spread = (C * predicted).mean(axis=1), np.max(T[:, 1]) + np.ptp(C * predicted, axis=1)
        steps = np.linspace(-8, 8, 121)
        y1 = (middle[:, None] + spread[:, None] * steps)[:, :, None]
        e1 = y1 - (C * predicted)[:, None, :]
        weight = joint * normal(e1, T[:, 1]) * M[:, 1]
        target = -K[:, 1] * (predicted[:, None, :] + L[:, 1] * e1)
        sums = [np.sum(weight * target**power, axis=2) for power in range(3)]
        lost = sums[2] - np.divide(sums[1] ** 2, sums[0], out=np.zeros_like(sums[0]), where=sums[0] > 1e-280)
        total += np.min(now + lost.sum(axis=1) * spread * (steps[1] - steps[0]))
    return total * (y0_grid[1] - y0_grid[0])


def normal(x, deviation):
    return np.exp(-((x / deviation) ** 2) / 2) / (np.sqrt(2 * np.pi) * deviation)


@pytest.mark.slow
@pytest.mark.parametrize("unknown", UNKNOWN)
def test_the_bound_is_below_the_exact_bayes_gap_of_its_prior_and_close_to_it(unknown):
    ranges, least = UNKNOWN[unknown]
    family = scalar(ranges)
    bound = van_trees_bound(family, horizon=HORIZON, iterations=30)
    exact = exact_bayes_gap(family, bound.choice.prior)
    assert least * exact < bound.value < exact
