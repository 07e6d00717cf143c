import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from naive_identified import WINDOW_KEPT, NaiveModel, innovations

import lqgap as lg
from lqgap.adaptive import IdentifiedCertaintyEquivalence, UnknownPlant, run_many

STEPS = 200


@functools.cache
def spring():
    return lg.plants.mass_spring_damper().nominal()


@eqx.filter_jit
def drive(learner, plant, normals, key):
    """Observations, inputs and how many models were made, on a plant driven by normal numbers."""

    def step(carry, normal):
        memory, x, u_last = carry
        y = plant.C @ x + normal[2:]
        memory, u = learner.step(memory, y, u_last)
        return (memory, plant.A @ x + plant.B @ u + normal[:2], u), (y, u, memory.num_plans)

    return jax.lax.scan(step, (learner.init(key), jnp.zeros(2), jnp.zeros(1)), normals)[1]


@pytest.mark.parametrize("probing", [0.0, 0.3])
def test_inputs_are_those_of_a_recomputation_from_the_record(probing):
    plant = spring()
    told = UnknownPlant(order=2, Q=plant.Q, R=plant.R, window=8)
    learner = IdentifiedCertaintyEquivalence(told, probing=probing)
    key = jax.random.key(3)
    normals = np.random.default_rng(0).normal(size=(STEPS, 3))
    y, u, models = (np.asarray(x) for x in drive(learner, plant, jnp.asarray(normals), key))
    random = jax.vmap(lambda t: jax.random.normal(jax.random.fold_in(jax.random.split(key)[0], t), (1,)))
    z = np.asarray(random(jnp.arange(STEPS)))
    made = np.flatnonzero(np.diff(models, prepend=0))
    assert len(made) >= 2
    assert made[0] >= 2 * told.num_features
    np.testing.assert_array_equal(u[:19], 0)
    size = 0.3 * np.sqrt(np.mean(y[:20] ** 2) / plant.R[0, 0])
    np.testing.assert_allclose(u[19 : made[0]], size * z[19 : made[0]], rtol=1e-12)
    for start, end in zip(made, [*made[1:], STEPS], strict=True):
        model = NaiveModel(y[: start + 1], u[: start + 1], order=2, window=8, Q=plant.Q, R=plant.R)
        first = max(0, start - WINDOW_KEPT)
        G = model.gain()
        for t in range(start, end):
            chi = innovations(model.plant(), y[first : t + 1], u[first:t])
            expected = -G @ chi + probe(model, z[t], t, probing)
            np.testing.assert_allclose(u[t], expected, rtol=0, atol=1e-9 * np.abs(u).max())


def probe(model, normal, t, size):
    """sigma t^-1/4 (J / m)^1/2 M^-1/2 z, for one input."""
    A, B, C, F = model.theta
    P = scipy.linalg.solve_discrete_are(A, B, C.T @ model.Q @ C, model.R)
    M = model.R + B.T @ P @ B
    inner = P - P @ B @ np.linalg.solve(M, B.T @ P)
    J = np.trace(model.Q @ model.S) + np.trace(F.T @ inner @ F @ model.S)
    return size * t**-0.25 * np.sqrt(J / M[0]) * normal * model.su


def test_a_run_learns_the_plant(seed):
    plant = spring()
    learner = IdentifiedCertaintyEquivalence(UnknownPlant.like(plant))
    traces = run_many(learner, plant, horizon=1_000, keys=jax.random.split(jax.random.key(seed), 4))
    for trace in traces:
        half = trace.excess[len(trace.steps) // 2]
        assert trace.excess[-1] < 1.6 * half
        assert trace.figures["J"][-1] == pytest.approx(3.915, rel=0.5)
        assert not any(event.name == "no model" for event in trace.events)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_negative_probe_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match="probing"):
        IdentifiedCertaintyEquivalence(UnknownPlant.like(spring()), probing=-1.0)
