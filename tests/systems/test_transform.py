import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant, random_record

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.linalg import inverse_sqrt_psd, sqrt_psd
from lqgap.systems import change_coordinates, delay_input, log_likelihood, whiten


def test_costs_and_likelihoods_do_not_depend_on_coordinates(seed):
    plant = random_plant(seed)
    other = change_coordinates(plant, np.random.default_rng(seed + 3).normal(size=(3, 3)))
    y, u = random_record(seed, plant)
    np.testing.assert_allclose(lqgap.solve(plant).J, lqgap.solve(other).J, rtol=1e-9)
    np.testing.assert_allclose(
        lqgap.solve_finite(plant, horizon=5).value, lqgap.solve_finite(other, horizon=5).value, rtol=1e-9
    )
    np.testing.assert_allclose(log_likelihood(plant, y, u), log_likelihood(other, y, u), rtol=1e-8)


@pytest.mark.parametrize("T", [np.ones((3, 3)), np.zeros((3, 3)), np.eye(2), np.eye(3) * np.nan, "T"])
def test_a_change_of_coordinates_must_be_invertible(T):
    with pytest.raises(InvalidSystemError, match="T "):
        change_coordinates(random_plant(0), T)


def test_whitening_gives_unit_noise_and_maps_every_quantity(seed):
    plant = random_plant(seed)
    white = whiten(plant)
    np.testing.assert_array_equal(white.W, np.eye(3))
    np.testing.assert_array_equal(white.V, np.eye(2))
    o, w = lqgap.solve(plant), lqgap.solve(white)
    W, V = sqrt_psd(plant.W), sqrt_psd(plant.V)
    W_inverse, V_inverse = inverse_sqrt_psd(plant.W), inverse_sqrt_psd(plant.V)
    for actual, mapped in (
        (o.Sigma, W @ w.Sigma @ W),
        (o.L, W @ w.L @ V_inverse),
        (o.F, W @ w.F @ V_inverse),
        (o.P, W_inverse @ w.P @ W_inverse),
        (o.K, w.K @ W_inverse),
        (o.S, V @ w.S @ V),
        (o.J, w.J),
    ):
        np.testing.assert_allclose(actual, mapped, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        lqgap.solve_finite(plant, horizon=5).value, lqgap.solve_finite(white, horizon=5).value, rtol=1e-9
    )


def test_a_plant_with_noise_free_states_cannot_be_whitened():
    with pytest.raises(InvalidSystemError, match="W is singular"):
        whiten(delay_input(random_plant(0), 1))


@pytest.mark.parametrize(("steps", "longest"), [(0, None), (0, 2), (1, 1), (2, None), (2, 4)])
def test_a_delayed_plant_answers_later(seed, steps, longest):
    plant = random_plant(seed)
    delayed = delay_input(plant, steps, longest=longest)
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(8, 2))
    x, z = jnp.zeros(3), jnp.zeros(delayed.num_states)
    for t in range(8):
        np.testing.assert_allclose(delayed.C @ z, plant.C @ x, atol=1e-12)
        late = inputs[t - steps] if t >= steps else np.zeros(2)
        x = plant.A @ x + plant.B @ late
        z = delayed.A @ z + delayed.B @ inputs[t]


def test_past_inputs_beyond_the_delay_change_no_cost():
    plant = random_plant(0)
    tight, padded = delay_input(plant, 1), delay_input(plant, 1, longest=3)
    np.testing.assert_allclose(lqgap.solve(tight).J, lqgap.solve(padded).J, rtol=1e-9)
    assert padded.num_states == 3 + 3 * 2


def test_delay_costs(seed):
    plant = random_plant(seed)
    costs = [lqgap.solve(delay_input(plant, steps)).J for steps in range(3)]
    assert costs[0] < costs[1] < costs[2]


@pytest.mark.parametrize(("steps", "longest"), [(-1, None), (1.5, None), (2, 1), (0, -1)])
def test_a_delay_is_a_whole_number_of_steps(steps, longest):
    with pytest.raises(InvalidArgumentError):
        delay_input(random_plant(0), steps, longest=longest)
