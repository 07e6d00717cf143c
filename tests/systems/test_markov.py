import jax.numpy as jnp
import numpy as np
from random_systems import random_plant, random_record

import lqgap
from lqgap.systems import (
    change_coordinates,
    markov_parameters,
    predictor_markov_parameters,
    predictor_matrix,
    steady_beliefs,
)


def test_markov_parameters_are_the_impulse_response(seed):
    plant = random_plant(seed)
    response = markov_parameters(plant, length=5)
    for channel in range(2):
        x = plant.B[:, channel]
        for k in range(5):
            np.testing.assert_allclose(response[k, :, channel], plant.C @ x, atol=1e-12)
            x = plant.A @ x


def test_predictor_markov_parameters_predict(seed):
    """yhat_{t|t-1} is their convolution with the past, up to what lies before the window."""
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant, steps=8)
    of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=7)
    prediction = sum(of_inputs[k] @ u[6 - k] + of_outputs[k] @ y[6 - k] for k in range(7))
    last = steady_beliefs(optimum, plant, y, u)[6]
    np.testing.assert_allclose(prediction, plant.C @ (plant.A @ last + plant.B @ u[6]), atol=1e-9)


def test_they_do_not_depend_on_coordinates(seed):
    plant = random_plant(seed)
    T = np.random.default_rng(seed + 9).normal(size=(3, 3))
    other = change_coordinates(plant, T)
    np.testing.assert_allclose(
        markov_parameters(plant, length=4), markov_parameters(other, length=4), atol=1e-9
    )
    for one, two in zip(
        predictor_markov_parameters(lqgap.solve(plant), plant, length=4),
        predictor_markov_parameters(lqgap.solve(other), other, length=4),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, atol=1e-8)


def test_the_first_is_cb_and_cf():
    plant = random_plant(0)
    optimum = lqgap.solve(plant)
    of_inputs, of_outputs = predictor_markov_parameters(optimum, plant, length=2)
    np.testing.assert_allclose(of_inputs[0], plant.C @ plant.B, atol=1e-12)
    np.testing.assert_allclose(
        of_outputs[1], plant.C @ predictor_matrix(optimum, plant) @ optimum.F, atol=1e-12
    )
    assert jnp.shape(of_outputs) == (2, 2, 2)
