"""Time against the number of states: equations, filters, rollouts."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.scaling.curves import HEADER, Curve, curve, draw, show_seconds
from benchmarks.timing import table
from lqgap.linalg import solve_riccati
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.simulators import Finite
from lqgap.systems.kalman import plan_filter

SIZES = (2, 8, 16, 32, 64)
NUM_PORTS = 2  # inputs, and outputs
NUM_PLANTS, NUM_STEPS, NUM_ROLLOUTS, NUM_MODELS = 16, 64, 64, 8


def run() -> str:
    """A table and a picture."""
    curves = measure()
    path = draw("growth_states", curves, over="states n", cost="seconds")
    note = (
        f"Random stable plants with {NUM_PORTS} inputs and outputs, after compilation, in double precision, "
        f"{NUM_PLANTS} equations or plants and {NUM_ROLLOUTS} rollouts at a time. As in all these "
        "sections, time is that of processors, not of the clock, and the exponent is the slope in logarithms "
        f"over the upper half of the sizes. The picture is docs/{path}."
    )
    return table("Growth with the states", note, HEADER, [each.row(show_seconds) for each in curves])


def measure(sizes: tuple[int, ...] = SIZES) -> list[Curve]:
    """All curves."""
    return [
        curve("a Riccati equation", "3", sizes, _riccati, per=NUM_PLANTS),
        curve("`optima` of a plant", "3", sizes, _optima, per=NUM_PLANTS),
        curve("covariances of a filter, a step", "3", sizes, _filter, per=NUM_STEPS * NUM_PLANTS),
        curve("rollout of `StationaryLQG`, a step", "2", sizes, _rollout, per=NUM_STEPS * NUM_ROLLOUTS),
        curve(f"rollout of a bank of {NUM_MODELS}, a step", "2", sizes, _bank, per=NUM_STEPS * NUM_ROLLOUTS),
    ]


def plants(size: int, count: int = NUM_PLANTS) -> lg.LQG:
    """Random stable plants, as a batch."""
    rng = np.random.default_rng(size)
    A = rng.normal(size=(count, size, size))
    A *= (0.9 / np.max(np.abs(np.linalg.eigvals(A)), axis=1))[:, None, None]
    B, C = rng.normal(size=(count, size, NUM_PORTS)), rng.normal(size=(count, NUM_PORTS, size))
    return jax.vmap(lg.LQG)(A, B, C)


def _riccati(size: int) -> Callable[[], Any]:
    batch, Q, R = plants(size), np.eye(size), np.eye(NUM_PORTS)
    solve = jax.jit(jax.vmap(lambda A, B: solve_riccati(A, B, Q=Q, R=R)))
    return lambda: solve(batch.A, batch.B)


def _optima(size: int) -> Callable[[], Any]:
    members = Finite(plants(size))
    return lambda: members.optima().J


def _filter(size: int) -> Callable[[], Any]:
    batch = plants(size)
    plan = jax.jit(jax.vmap(lambda plant: jnp.sum(plan_filter(plant, num_steps=NUM_STEPS).L)))
    return lambda: plan(batch)


def _rollout(size: int) -> Callable[[], Any]:
    plant = Finite(plants(size, 2))[0]
    return _costs(StationaryLQG(plant, filters="steady"), plant)


def _bank(size: int) -> Callable[[], Any]:
    members = Finite(plants(size, NUM_MODELS))
    return _costs(ModelBank(members.systems, filters="steady"), members[0])


def _costs(policy: Any, plant: lg.LQG) -> Callable[[], Any]:
    def cost(key: jax.Array) -> jax.Array:
        return jnp.sum(lg.rollout(policy, plant, horizon=NUM_STEPS - 1, key=key).cost)

    keys, costs = jax.random.split(jax.random.key(0), NUM_ROLLOUTS), jax.jit(jax.vmap(cost))
    return lambda: costs(keys)
