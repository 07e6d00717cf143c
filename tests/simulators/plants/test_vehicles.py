import numpy as np
import pytest
import scipy

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import plants
from lqgap.systems import markov_parameters

UNIT_SCALES = dict(static_stability=1.0, pitch_damping=1.0, elevator=1.0, thrust=1.0)


def test_double_integrator_without_delay_has_the_known_cost():
    reference = 59.271107
    padded = plants.double_integrator().build(gain=1.0, delay=0)
    np.testing.assert_allclose(lqgap.solve(padded).J, reference, atol=5e-7)
    plain = plants.double_integrator(delay=0).build(gain=1.0)
    np.testing.assert_allclose(plain.A, [[1, 0.1], [0, 1]])
    np.testing.assert_allclose(plain.B, [[0], [0.1]])
    np.testing.assert_allclose(lqgap.solve(plain).J, reference, atol=5e-7)


def test_a_delay_shifts_the_response_and_costs_more():
    members = [plants.double_integrator().build(gain=1.0, delay=delay) for delay in range(4)]
    responses = [np.asarray(markov_parameters(plant, length=10)).ravel() for plant in members]
    for delay, response in enumerate(responses):
        np.testing.assert_allclose(response[delay:], responses[0][: 10 - delay], atol=1e-12)
        np.testing.assert_allclose(response[:delay], 0)
    costs = [float(lqgap.solve(plant).J) for plant in members]
    assert costs == sorted(costs)


@pytest.mark.parametrize("delay", [(0, 3), [0, 1.5], [-1, 0], [0, "a"], 0.5])
def test_a_delay_is_a_number_of_steps(delay):
    with pytest.raises(InvalidArgumentError, match=r"delay is .* whole and at least 0"):
        plants.double_integrator(delay=delay)


def test_boeing_747_may_show_speed_and_attitude_only():
    plant = plants.boeing_747(measured="speed_and_attitude").build(**UNIT_SCALES)
    np.testing.assert_allclose(plant.C, [[1, 0, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(lqgap.solve(plant).J, 10.019877, atol=5e-7)


def test_boeing_747_has_the_matrices_of_the_literature():
    plant = plants.boeing_747().build(**UNIT_SCALES)
    A = [[0.99, 0.03, -0.02, -0.32], [0.01, 0.47, 4.7, 0], [0.02, -0.06, 0.4, 0], [0.01, -0.04, 0.72, 0.99]]
    B = [[0.01, 0.99], [-3.44, 1.66], [-0.83, 0.44], [-0.47, 0.25]]
    np.testing.assert_allclose(plant.A, A, rtol=1e-12)
    np.testing.assert_allclose(plant.B, B, rtol=1e-12)


def test_boeing_747_scales_derivatives():
    family = plants.boeing_747(heave_damping=(0.8, 1.2))
    nominal = family.build(**UNIT_SCALES, heave_damping=1.0)
    scaled = family.build(
        static_stability=1.1, pitch_damping=0.9, heave_damping=1.05, elevator=0.8, thrust=1.2
    )
    scales = np.array([[1, 1, 1, 1], [1, 1.05, 1, 1], [1, 1.1, 0.9, 1], [1, 1.1, 1, 1]])
    np.testing.assert_allclose(scaled.A - np.eye(4), scales * (nominal.A - np.eye(4)), atol=1e-12)
    np.testing.assert_allclose(scaled.B, nominal.B @ np.diag([0.8, 1.2]))


@pytest.mark.usefixtures("as_users_run_it")
def test_boeing_747_measures_what_it_can():
    with pytest.raises(InvalidArgumentError, match="measured is 'altitude', expected 'states'"):
        plants.boeing_747(measured="altitude")


def test_uav_hover_has_the_matrices_of_the_literature():
    plant = plants.uav_hover().build(mass=1.0, thrust_gain=1.0)
    np.testing.assert_allclose(plant.A, np.kron(np.eye(2), [[1, 0.5], [0, 1]]), atol=1e-12)
    np.testing.assert_allclose(plant.B, np.kron(np.eye(2), [[0.125], [0.5]]), atol=1e-12)
    np.testing.assert_allclose(plant.Q, np.diag([1, 0.1, 2, 0.2]))


def test_uav_hover_obeys_newton_in_both_directions():
    plant = plants.uav_hover(drag=0.3).build(mass=0.9, thrust_gain=1.1)
    A, B = np.array([[0, 1], [0, -0.3 / 0.9]]), np.array([[0], [1.1 / 0.9]])
    A, B, *_ = scipy.signal.cont2discrete((A, B, np.eye(2), np.zeros((2, 1))), 0.5)
    np.testing.assert_allclose(plant.A, np.kron(np.eye(2), A), atol=1e-12)
    np.testing.assert_allclose(plant.B, np.kron(np.eye(2), B), atol=1e-12)


def test_without_drag_mass_and_thrust_gain_are_seen_only_as_their_ratio():
    family = plants.uav_hover()
    one, two = family.build(mass=0.8, thrust_gain=0.9), family.build(mass=0.96, thrust_gain=1.08)
    np.testing.assert_allclose(one.B, two.B, atol=1e-12)
    np.testing.assert_allclose(one.A, two.A, atol=1e-12)
