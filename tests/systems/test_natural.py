import jax
import numpy as np
import pytest
from random_systems import random_plant
from units import SI, in_other_units, random_coordinates, servo

import lqgap as lg
from lqgap.systems import delay_input, markov_parameters
from lqgap.systems.natural import in_natural_coordinates, naturalize, typical_covariance


@jax.jit
def natural(plant):
    return in_natural_coordinates(plant)


def plants(seed):
    return lg.Finite([random_plant(seed), random_plant(seed + 10)])


def assert_same(one, other, *, rtol):
    for name, matrix in one.matrices().items():
        size = np.abs(matrix).max()
        np.testing.assert_allclose(getattr(other, name), matrix, rtol=0, atol=rtol * size, err_msg=name)


def test_natural_states_have_unit_covariance_under_their_own_optimal_input(seed):
    moved = natural(random_plant(seed))
    np.testing.assert_allclose(typical_covariance(moved), np.eye(3), atol=1e-10)
    assert np.all(np.abs(np.triu(np.asarray(moved.C), k=1)) < 1e-10)


def test_the_covariance_is_that_of_a_discounted_simulation(seed):
    plant = random_plant(seed)
    radius = np.abs(np.linalg.eigvals(plant.A)).max()
    discount = 0.99 / max(1.0, radius - 0.005)
    short = lg.LQG(discount * plant.A, discount * plant.B, plant.C, Q=plant.Q, R=plant.R, W=np.eye(3))
    closed_loop = discount * (np.asarray(plant.A) - np.asarray(plant.B) @ np.asarray(lg.solve(short).K))
    X = term = np.asarray(plant.W + plant.S0)
    for _ in range(3000):
        term = closed_loop @ term @ closed_loop.T
        X = X + term
    np.testing.assert_allclose(typical_covariance(plant), X, rtol=1e-9, atol=1e-12)


def test_inputs_and_outputs_see_the_same_plant(seed):
    plant = random_plant(seed)
    moved = natural(plant)
    np.testing.assert_allclose(
        markov_parameters(moved, length=9), markov_parameters(plant, length=9), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(lg.solve(moved).J, lg.solve(plant).J, rtol=1e-9)


@pytest.mark.parametrize("decades", [0, 6])
def test_every_state_has_the_same_natural_coordinates(seed, decades):
    members = plants(seed)
    moved = members.in_coordinates(random_coordinates(seed, 3, decades=decades))
    assert_same(naturalize(members.systems), naturalize(moved.systems), rtol=1e-8)


def test_units_of_inputs_and_outputs_do_not_change_the_natural_state():
    members = plants(0)
    moved = in_other_units(members, inputs=[1e-3, 20.0], outputs=[100.0, 0.02])
    one, other = naturalize(members.systems), naturalize(moved.systems)
    for name in ("A", "W", "S0"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8, atol=1e-9)


def test_natural_coordinates_of_natural_coordinates_are_themselves():
    once = naturalize(servo(SI).grid(2).systems)
    assert_same(once, naturalize(once), rtol=1e-9)


def test_states_that_no_output_shows_are_left_over():
    plant = delay_input(random_plant(0), 1, longest=3)
    hidden = lg.LQG(
        np.diag([0.9, 1.0, 0.5]),
        [[1.0], [0.0], [0.0]],
        [[1.0, 0.0, 0.0]],
        W=np.diag([1.0, 0, 0]),
        S0=np.zeros((3, 3)),
    )
    for given in (plant, hidden):
        moved = natural(given)
        np.testing.assert_allclose(
            markov_parameters(moved, length=9), markov_parameters(given, length=9), rtol=1e-8, atol=1e-12
        )
