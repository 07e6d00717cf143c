import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_identified import WINDOW_KEPT, NaiveModel, loss_rows, responses

import lqgap as lg
from lqgap.adaptive import AdaptOn, UnknownPlant, run_many

STEPS, MEMORY, WINDOW = 200, 5, 8


@functools.cache
def spring():
    return lg.plants.mass_spring_damper().nominal()


@eqx.filter_jit
def drive(learner, plant, normals, key):
    def step(carry, normal):
        memory, x, u_last = carry
        y = plant.C @ x + normal[2:]
        memory, u = learner.step(memory, y, u_last)
        x = plant.A @ x + plant.B @ u + normal[:2]
        return (memory, x, u), (y, u, memory.num_plans, memory.num_trips)

    return jax.lax.scan(step, (learner.init(key), jnp.zeros(2), jnp.zeros(1)), normals)[1]


def test_inputs_are_those_of_a_recomputation_from_the_record():
    """Models at 4d and 8d, each with features from the last samples; the taps and their sums stay."""
    plant = spring()
    learner = AdaptOn(UnknownPlant(order=2, Q=plant.Q, R=plant.R, window=WINDOW), memory=MEMORY)
    normals = jnp.asarray(np.random.default_rng(0).normal(size=(STEPS, 3)))
    y, u, models, trips = (np.asarray(x) for x in drive(learner, plant, normals, jax.random.key(3)))
    made = np.flatnonzero(np.diff(models, prepend=0)).tolist()
    assert trips[-1] == 0
    assert made == [64, 128]
    Q, R = np.asarray(plant.Q), np.asarray(plant.R)
    sizes, gram, right = [], None, np.zeros(MEMORY)
    for start, end in zip(made, [*made[1:], STEPS], strict=True):
        model = NaiveModel(y[: start + 1], u[: start + 1], order=2, window=WINDOW, Q=Q, R=R)
        A, B, C, F = model.plant()
        radius = np.max(np.abs(np.linalg.eigvals(A)))
        matrices = (A * min(1, 0.999 / radius), B, C, F)
        first = start - WINDOW_KEPT
        natural, f, v = responses(matrices, y[first:end], u[first:end], memory=MEMORY)
        for t in range(start, end):
            now = t - first
            rows, r = loss_rows(natural[now], f(now), v(now), Q=Q, R=R)
            if len(sizes) < 20:
                sizes.append(np.sum(rows**2))
                np.testing.assert_array_equal(u[t], 0)
                continue
            gram = 5 * np.mean(sizes) / MEMORY * np.eye(MEMORY) if gram is None else gram
            gram, right = gram + rows.T @ rows, right + rows.T @ r
            expected = -np.linalg.solve(gram, right) @ np.concatenate(f(now))
            np.testing.assert_allclose(u[t], expected, rtol=0, atol=1e-9 * np.abs(u).max())


@pytest.mark.slow
def test_regret_grows_slowly():
    plant = spring()
    learner = AdaptOn(UnknownPlant.like(plant, window=WINDOW))
    traces = run_many(learner, plant, horizon=10_000, keys=jax.random.split(jax.random.key(0), 20))
    mean = np.mean([trace.excess for trace in traces], axis=0)
    at = np.searchsorted(traces[0].steps, [1_000, 10_000])
    assert np.log10(mean[at[1]] / mean[at[0]]) < 0.4
