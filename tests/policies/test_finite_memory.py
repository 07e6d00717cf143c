import jax.numpy as jnp
import numpy as np
import pytest
from programs import replay
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.policies import ClippedHistory, StationaryLQG
from lqgap.systems import arx_matrix, arx_window, clipped_beliefs


def test_it_is_the_gain_times_the_clipped_belief(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant)
    y[3], y[6, 0] = np.nan, np.nan
    optimum = lg.solve(plant)
    expected = -clipped_beliefs(optimum, plant, y, u, length=4) @ optimum.K.T
    chosen = replay(ClippedHistory.from_plant(plant, length=4), y, u)[1]
    np.testing.assert_allclose(chosen, expected, rtol=1e-9, atol=1e-11)


def test_a_long_memory_is_the_stationary_controller():
    plant = random_plant(1)
    y, u = random_record(1, plant, steps=30)
    expected = replay(StationaryLQG(plant, filters="steady"), y, u)[1]
    chosen = replay(ClippedHistory.from_plant(plant, length=30), y, u)[1]
    np.testing.assert_allclose(chosen, expected, rtol=1e-9, atol=1e-11)


def test_a_lost_observation_is_replaced_by_the_models_prediction():
    plant = random_plant(2)
    y, u = random_record(2, plant, steps=8)
    lost = y.copy()
    lost[-1] = np.nan
    window, _ = replay(ClippedHistory.from_plant(plant, length=3), lost, u)
    eta = arx_window(jnp.asarray(y), jnp.asarray(u), length=3)[-2]
    expected = arx_matrix(lg.solve(plant), plant, length=3) @ eta
    np.testing.assert_allclose(window.y[0], expected, rtol=1e-10)


@pytest.mark.usefixtures("as_users_run_it")
def test_taps_that_do_not_fit_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="input_taps has shape"):
        ClippedHistory(np.ones((3, 1, 2)), np.ones((2, 1, 1)))
    with pytest.raises(lg.LqgapError, match="stack of matrices"):
        ClippedHistory(np.ones((3, 1)), np.ones((3, 1, 1)))
