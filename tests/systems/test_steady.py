import jax.numpy as jnp
import numpy as np
from random_systems import random_plant, random_record

import lqgap
from lqgap.systems import (
    filter_record,
    predictor_matrix,
    steady_beliefs,
    steady_correct,
    steady_predict,
)


def test_golden_beliefs(golden, golden_plant):
    history = golden["history"]
    beliefs = steady_beliefs(lqgap.solve(golden_plant), golden_plant, history["y"], history["u"])
    for step, expected in history["full_belief"].items():
        np.testing.assert_allclose(beliefs[int(step)], expected, rtol=1e-9, atol=1e-12)


def test_the_predictor_form_gives_the_same_predictions(seed):
    """xhat_{t+1|t} = Abar xhat_{t|t-1} + B u_t + F y_t."""
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    y, u = random_record(seed, plant)
    beliefs = steady_beliefs(optimum, plant, y, u)
    predicted = jnp.zeros(3)
    for t in range(len(y)):
        np.testing.assert_allclose(beliefs[t], steady_correct(optimum, plant, predicted, jnp.asarray(y[t])))
        predicted = predictor_matrix(optimum, plant) @ predicted + plant.B @ u[t] + optimum.F @ y[t]
        np.testing.assert_allclose(
            predicted, steady_predict(plant, beliefs[t], jnp.asarray(u[t])), atol=1e-10
        )


def test_started_from_the_steady_covariance_it_is_the_exact_filter(seed):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    settled = lqgap.LQG(
        plant.A, plant.B, plant.C, Q=plant.Q, R=plant.R, W=plant.W, V=plant.V, S0=optimum.Sigma
    )
    y, u = random_record(seed, plant)
    exact = filter_record(settled, y, u).belief.mean
    np.testing.assert_allclose(steady_beliefs(optimum, plant, y, u), exact, atol=1e-9)


def test_a_lost_observation_is_predicted_over(seed):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    predicted = jnp.ones(3)
    np.testing.assert_array_equal(steady_correct(optimum, plant, predicted, jnp.full(2, jnp.nan)), predicted)
