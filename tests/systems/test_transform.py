import numpy as np
import pytest
from random_systems import random_plant, random_record

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.systems import change_coordinates, delay_input, log_likelihood


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
