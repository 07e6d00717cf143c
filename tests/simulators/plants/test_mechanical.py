import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.linalg

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import plants


def assert_held(plant, A, B, dt):
    """The plant is the zero-order hold of x' = A x + B u, by scipy."""
    A, B = np.array(A), np.array(B)
    expected_A, expected_B, *_ = scipy.signal.cont2discrete((A, B, np.eye(len(A)), np.zeros(B.shape)), dt)
    np.testing.assert_allclose(plant.A, expected_A, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(plant.B, expected_B, rtol=1e-9, atol=1e-12)


def generator_of(plant, dt):
    """The continuous A and B of which the plant is the zero-order hold."""
    n, m = plant.B.shape
    step = np.block([[np.asarray(plant.A), np.asarray(plant.B)], [np.zeros((m, n)), np.eye(m)]])
    generator = scipy.linalg.logm(step).real / dt
    return generator[:n, :n], generator[:n, n:]


def test_mass_spring_damper_obeys_newton():
    family = plants.mass_spring_damper(mass=(1, 3), damping=0.7, dt=0.2)
    plant = family.build(stiffness=1.5, gain=2.5, mass=2.0)
    assert_held(plant, [[0, 1], [-1.5 / 2, -0.7 / 2]], [[0], [2.5 / 2]], 0.2)
    np.testing.assert_allclose(plant.C, [[1, 0]])


def test_two_mass_spring_obeys_newton():
    """Forces summed mass by mass, from the stretch of each spring and damper."""

    def accelerations(q, v, u):
        stretch, rate = np.diff([0, *q, 0]), np.diff([0, *v, 0])
        tension = np.array([4, 1.5, 6]) * stretch + np.array([1, 1, 2]) * rate
        return (np.diff(tension) + u) / [1, 2.2]

    columns = [accelerations(e[:2], e[2:4], e[4:]) for e in np.eye(6)]
    dynamics = np.vstack([np.eye(4)[2:] @ np.eye(4, 6), np.transpose(columns)])
    plant = plants.two_mass_spring().build(mass_2=2.2, stiffness_2=1.5)
    assert_held(plant, dynamics[:, :4], dynamics[:, 4:], 0.1)
    np.testing.assert_allclose(plant.C, np.eye(2, 4))


def test_acc_two_mass_keeps_momentum_and_shows_the_second_mass():
    plant = plants.acc_two_mass(damping=0.05, mass_1=2.0).build(stiffness=1.25)
    momentum = np.array([0, 0, 2.0, 1.0])
    np.testing.assert_allclose(momentum @ plant.A, momentum, atol=1e-12)
    np.testing.assert_allclose(momentum @ plant.B, [0.1], atol=1e-12)
    np.testing.assert_allclose(plant.C, [[0, 1, 0, 0]])
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-1.25 / 2, 1.25 / 2, -0.025, 0.025], [1.25, -1.25, 0.05, -0.05]]
    assert_held(plant, A, [[0], [0], [0.5], [0]], 0.1)


def test_damping_moves_the_oscillation_of_acc_two_mass_inside_the_unit_circle():
    for damping, num_inside in [(0.0, 0), (0.1, 2)]:
        plant = plants.acc_two_mass(damping=damping).build(stiffness=1.25)
        assert np.sum(np.abs(np.linalg.eigvals(plant.A)) < 1 - 1e-4) == num_inside


def test_dc_motor_settles_at_the_speed_of_the_data_sheet():
    plant = plants.dc_motor().build(inertia=0.01, friction=0.005)
    current, speed = np.linalg.solve(np.eye(2) - plant.A, np.asarray(plant.B)[:, 0])
    np.testing.assert_allclose(speed, 0.1 / (0.1**2 + 1.0 * 0.005), rtol=1e-9)  # K / (K^2 + R b)
    np.testing.assert_allclose(0.1 * current, 0.005 * speed, rtol=1e-9)  # torque equals friction


def test_dc_motor_conserves_power():
    """Voltage times current is heat, friction, and what the coil and the rotor store."""
    plant = plants.dc_motor(inertia=0.012).build(friction=0.003)
    A, B = generator_of(plant, 0.05)
    current, speed, voltage = 0.7, 30.0, 5.0
    current_rate, speed_rate = A @ [current, speed] + B[:, 0] * voltage
    stored = 0.01 * current * current_rate + 0.012 * speed * speed_rate
    np.testing.assert_allclose(voltage * current, stored + 1.0 * current**2 + 0.003 * speed**2, rtol=1e-6)


def test_dc_motor_position_is_the_integral_of_its_speed():
    by_speed, by_position = (
        plants.dc_motor(measured=measured).build(inertia=0.01, friction=0.005)
        for measured in ("speed", "position")
    )
    np.testing.assert_allclose(by_position.A[:2, :2], by_speed.A, rtol=1e-9)
    A, B = generator_of(by_position, 0.05)
    np.testing.assert_allclose(np.column_stack([A, B])[2], [0, 1, 0, 0], atol=1e-7)
    np.testing.assert_allclose(by_position.C, [[0, 0, 1]])
    assert lqgap.solve(by_position).converged


@pytest.mark.usefixtures("as_users_run_it")
def test_dc_motor_measures_speed_or_position():
    with pytest.raises(InvalidArgumentError, match="measured is 'torque', expected 'speed' or 'position'"):
        plants.dc_motor(measured="torque")


def pendulum_rates(state, u, *, pole_mass, pole_length, cart_damping, actuator_lag):
    """The nonlinear equations of motion, from the free bodies: cart 1 kg, spring 5 N/m, hinge 0.01 N m s.

    Unknown are both accelerations and the force (along, up) of the hinge on the pole.
    """
    position, angle, speed, turn, force = state
    arm = pole_length / 2
    sin, cos = np.sin(angle), np.cos(angle)
    equations = [
        [1.0, 0, 1, 0],  # cart: p'' = f - damping - spring - hinge
        [pole_mass, pole_mass * arm * cos, -1, 0],  # pole, along: m (p + arm sin a)'' = hinge
        [0, pole_mass * arm * sin, 0, -1],  # pole, up: m (-arm cos a)'' = hinge - m g
        [0, pole_mass * pole_length**2 / 12, arm * cos, arm * sin],  # pole, about its middle: hinge above it
    ]
    right = [
        force - cart_damping * speed - 5.0 * position,
        pole_mass * arm * sin * turn**2,
        -pole_mass * arm * cos * turn**2 - pole_mass * 9.81,
        -0.01 * turn,
    ]
    speed_rate, turn_rate, *_ = np.linalg.solve(equations, right)
    return np.array([speed, turn, speed_rate, turn_rate, (u - force) / actuator_lag])


def test_hanging_pendulum_is_the_linearisation_of_its_equations_of_motion():
    values = dict(pole_mass=0.25, pole_length=0.8, cart_damping=0.6, actuator_lag=0.1)
    plant = plants.hanging_pendulum_cart().build(**values)
    size = 1e-5
    columns = [
        (pendulum_rates(d[:5], d[5], **values) - pendulum_rates(-d[:5], -d[5], **values)) / (2 * size)
        for d in size * np.eye(6)
    ]
    dynamics = np.transpose(columns)
    expected_A, expected_B, *_ = scipy.signal.cont2discrete(
        (dynamics[:, :5], dynamics[:, 5:], np.eye(5), np.zeros((5, 1))), 0.03
    )
    np.testing.assert_allclose(plant.A, expected_A, atol=1e-8)
    np.testing.assert_allclose(plant.B, expected_B, atol=1e-8)
    np.testing.assert_allclose(plant.C, np.eye(2, 5))


def test_a_small_swing_of_the_nonlinear_pendulum_is_predicted():
    values = dict(pole_mass=0.2, pole_length=0.75, cart_damping=1.0, actuator_lag=0.1)
    plant = plants.hanging_pendulum_cart().build(**values)
    start = 1e-4 * np.array([1, -2, 0, 0, 0.5])
    u = 2e-4
    swing = scipy.integrate.solve_ivp(
        lambda _, x: pendulum_rates(x, u, **values), (0, 0.6), start, rtol=1e-10, atol=1e-14
    )
    state = start
    for _ in range(20):
        state = plant.A @ state + plant.B[:, 0] * u
    np.testing.assert_allclose(state, swing.y[:, -1], atol=1e-10)  # cubic terms of 1e-4 are smaller


def test_a_pole_on_a_heavy_cart_swings_like_a_pendulum():
    """A uniform rod swings with sqrt(3 g / 2 l) rad/s."""
    family = plants.hanging_pendulum_cart(cart_mass=1e6, stiffness=0.0, pole_damping=0.0)
    plant = family.build(pole_mass=0.2, pole_length=0.75, cart_damping=1.0, actuator_lag=0.1)
    frequencies = np.abs(np.angle(np.linalg.eigvals(plant.A))) / 0.03
    np.testing.assert_allclose(frequencies.max(), np.sqrt(3 * 9.81 / (2 * 0.75)), rtol=1e-6)
