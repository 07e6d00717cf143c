import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant, random_record

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.systems import (
    ClippedFilter,
    arx_matrix,
    arx_window,
    clipped_beliefs,
    filter_matrix,
    predictor_matrix,
    steady_beliefs,
)
from lqgap.systems.window import MAX_LENGTH, clipping_error, clipping_errors


def clipped_sum(optimum, plant, y, u, t, length):
    """The defining sum, term by term."""
    calA = np.asarray(filter_matrix(optimum, plant))
    keep = np.eye(plant.num_states) - optimum.L @ plant.C
    belief = np.zeros(plant.num_states)
    for s in range(1, length + 1):
        if (index := t - s + 1) >= 0:
            past = keep @ plant.B @ u[index - 1] if index > 0 else 0
            belief = belief + np.linalg.matrix_power(calA, s - 1) @ (past + optimum.L @ y[index])
    return belief


def test_golden_beliefs_and_arx_matrix(golden, golden_plant):
    history = golden["history"]
    optimum = lqgap.solve(golden_plant)
    beliefs = clipped_beliefs(optimum, golden_plant, history["y"], history["u"], length=history["l"])
    for step, expected in history["clipped_belief"].items():
        np.testing.assert_allclose(beliefs[int(step)], expected, rtol=1e-9, atol=1e-12)
    N = arx_matrix(optimum, golden_plant, length=history["l"])
    np.testing.assert_allclose(N, golden["arx_N"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("length", [1, 3, 20])
def test_the_sliding_recursion_is_the_defining_sum(seed, length):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant)
    beliefs = clipped_beliefs(optimum, plant, y, u, length=length)
    for t in range(len(y)):
        np.testing.assert_allclose(beliefs[t], clipped_sum(optimum, plant, y, u, t, length), atol=1e-10)


def test_nothing_is_clipped_before_the_window_is_full_and_the_rest_decays(seed):
    plant, length = random_plant(seed), 4
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant)
    full = steady_beliefs(optimum, plant, y, u)
    clipped = clipped_beliefs(optimum, plant, y, u, length=length)
    np.testing.assert_allclose(clipped[:length], full[:length], atol=1e-10)
    forgotten = np.linalg.matrix_power(filter_matrix(optimum, plant), length)
    Abar = np.linalg.matrix_power(predictor_matrix(optimum, plant), length)
    for t in range(length, len(y)):
        np.testing.assert_allclose(full[t] - clipped[t], forgotten @ full[t - length], atol=1e-10)
        error = plant.C @ plant.A @ (full[t] - clipped[t])
        np.testing.assert_allclose(error, plant.C @ Abar @ plant.A @ full[t - length], atol=1e-10)


def test_the_arx_form_predicts_what_the_clipped_belief_predicts(seed):
    plant, length = random_plant(seed), 3
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant)
    beliefs = clipped_beliefs(optimum, plant, y, u, length=length)
    predictions = (beliefs @ plant.A.T + u @ plant.B.T) @ plant.C.T
    windows = arx_window(jnp.asarray(y), jnp.asarray(u), length=length)
    np.testing.assert_allclose(windows @ arx_matrix(optimum, plant, length=length).T, predictions, atol=1e-10)


@pytest.mark.slow
def test_a_million_steps_accumulate_no_error():
    """The recursion subtracts what it added long ago; its own stability must wash out rounding."""
    plant = random_plant(0)
    optimum = lqgap.solve(plant)
    y, u = random_record(0, plant, steps=1_000_000)
    beliefs = clipped_beliefs(optimum, plant, y, u, length=6)
    expected = clipped_sum(optimum, plant, y, u, len(y) - 1, 6)
    np.testing.assert_allclose(beliefs[-1], expected, atol=1e-12)


@pytest.mark.parametrize("length", [0, -3, 1.5])
def test_a_window_needs_a_length(length):
    plant = random_plant(0)
    with pytest.raises(InvalidArgumentError, match="length is"):
        ClippedFilter(lqgap.solve(plant), plant, length=length)


def test_a_lost_observation_is_predicted_over(seed):
    """With a window longer than the record, the clipped filter is the steady one, losses included."""
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant)
    y[3], y[6, 0] = np.nan, np.nan
    np.testing.assert_allclose(
        clipped_beliefs(optimum, plant, y, u, length=20), steady_beliefs(optimum, plant, y, u), atol=1e-10
    )


def test_a_window_leaves_out_what_the_belief_before_it_knew(seed):
    plant, length = random_plant(seed), 4
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant, steps=30)
    full = np.asarray(steady_beliefs(optimum, plant, y, u))
    clipped = np.asarray(clipped_beliefs(optimum, plant, y, u, length=length))
    left_out = np.asarray(plant.C @ plant.A) @ (full[-1] - clipped[-1])
    error = np.asarray(clipping_error(optimum, plant, length=length))
    np.testing.assert_allclose(
        np.linalg.norm(error @ full[-1 - length]),
        np.sqrt(left_out @ np.linalg.solve(optimum.S, left_out)),
        rtol=1e-8,
    )
    sizes = clipping_errors(optimum, plant, jnp.linalg.norm)
    assert sizes.shape == (MAX_LENGTH,)
    np.testing.assert_allclose(sizes[length - 1], np.linalg.norm(error), rtol=1e-10)
