"""Changes summed up to inputs, within limits; and a servo that learns plant and load at once."""

import functools
import runpy
from pathlib import Path

import numpy as np
import pytest
from heating import heat, rooms

import lqgap as lg
from lqgap.policies import BoundedChanges, Integrated, ModelBank, StationaryLQG

SERVO = Path(__file__).parents[2] / "docs" / "servo.py"


def oscillator():
    return lg.plants.mass_spring_damper().nominal()


def test_inputs_are_the_sum_of_the_changes_that_the_policy_inside_chooses(seed):
    form = lg.offset_free(oscillator(), load=1.0, drift=0.1)
    inside, y = StationaryLQG(form), np.random.default_rng(seed).normal(size=(20, 1))
    own, other = lg.Controller(inside), lg.Controller(Integrated(inside))
    changes, inputs = np.array([own(row) for row in y]), np.array([other(row) for row in y])
    np.testing.assert_allclose(inputs, np.cumsum(changes, axis=0), rtol=1e-9)


def test_inputs_that_are_no_changes_pass(seed):
    plant = lg.plants.boeing_747().nominal()
    form = lg.offset_free(plant, load=1.0, drift=0.1, inputs=[1])
    inside, y = StationaryLQG(form), np.random.default_rng(seed).normal(size=(5, plant.num_outputs))
    own, other = lg.Controller(inside), lg.Controller(Integrated(inside, inputs=[1]))
    chosen, inputs = np.array([own(row) for row in y]), np.array([other(row) for row in y])
    np.testing.assert_allclose(inputs[:, 0], chosen[:, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(inputs[:, 1], np.cumsum(chosen[:, 1]), rtol=1e-7, atol=1e-9)


def settle(limits, *, load):
    """Steps until the output stays within 0.02 after a reference out of reach, and how far it went beyond."""
    plant = oscillator()
    form = lg.offset_free(plant, load=1.0, drift=0.1)
    controller = lg.Controller(Integrated(StationaryLQG(form)), limits=limits, follow=[0])
    x, y = np.zeros(plant.num_states), []
    for t in range(700):
        u = controller(plant.C @ x, reference=[50.0] if t < 200 else [0.5])
        x = plant.A @ x + plant.B @ (u + load)
        y.append(float((plant.C @ x)[0]))
    return np.array(y)


def test_nothing_winds_up_while_an_actuator_is_at_its_limit():
    """After 200 steps at the limit the way back is that of a loop that never had a larger demand."""
    free = settle(None, load=0.2)
    np.testing.assert_allclose(free[-1], 0.5, atol=1e-6)
    clipped = settle((-1.0, 1.0), load=0.2)
    assert clipped[:200].max() < 5  # the limit holds it
    np.testing.assert_allclose(clipped[-1], 0.5, atol=1e-6)
    first_there = 200 + int(np.argmax(clipped[200:] < 0.5))
    late = np.flatnonzero(np.abs(clipped - 0.5) > 0.02)[-1]
    assert late - 200 < 5 * max(first_there - 200, 20)


def test_changes_within_limits_are_inputs_within_limits(seed):
    """On the plant in velocity form as on the plant itself, behind the same actuator."""
    form = lg.offset_free(oscillator(), load=1.0, drift=0.1)
    inside, y = StationaryLQG(form), 20 * np.random.default_rng(seed).normal(size=(30, 1))
    bounded = lg.Controller(BoundedChanges(inside, (-0.5, 0.3, 0.2)))
    clipped = lg.Controller(Integrated(inside), limits=(-0.5, 0.3, 0.2))
    inputs = np.cumsum([bounded(row) for row in y], axis=0)
    np.testing.assert_allclose(inputs, [clipped(row) for row in y], atol=1e-9)
    assert np.isclose(inputs, 0.3).any() or np.isclose(inputs, -0.5).any()
    assert np.isclose(np.abs(np.diff(inputs, axis=0)), 0.2).any()


def test_margins_are_those_of_the_policy_inside_on_the_plant_in_velocity_form():
    form = lg.offset_free(oscillator(), load=1.0, drift=0.1)
    found = lg.margins(StationaryLQG(form), form)
    assert found.gain_low[0] == 0
    assert 1 < found.sensitivity[0] < 3


@functools.cache
def servo():
    return runpy.run_path(str(SERVO))


def judge(policy, corner):
    """The rms error in the last half second before a reference changes, and the largest overshoot."""
    angle, reference = servo()["run"](policy, servo()["build"](*corner), seconds=60)
    error = ((angle - reference) * np.sign(reference)).reshape(-1, 500)
    return np.sqrt(np.mean(error[:, -50:] ** 2)), error.max()


@pytest.mark.slow
@pytest.mark.parametrize("corner", [(0.5, 0.1), (2.0, 1.0), (0.8, 0.3), (1.1, 0.4), (1.25, 0.55), (1.7, 0.2)])
def test_a_servo_learns_its_inertia_its_friction_and_its_load_at_once(corner):
    """The servo of the documentation: within 3 mrad, one count of its encoder, and not much overshoot."""
    rms, overshoot = judge(servo()["bank"], corner)
    nominal = Integrated(StationaryLQG(servo()["family"].nominal()))
    assert rms < 3e-3
    assert overshoot <= 1.2 * judge(nominal, corner)[1]


@functools.cache
def heating(*, is_measured):
    """A bank over capacities, walls and delays of 0 to 3 steps, with or without a thermometer outside."""

    def build(capacity, wall, delay):
        A, B = rooms(capacity, wall)
        noise = dict(W=1e-3 * np.eye(2), V=0.05**2 * np.eye(2), S0=np.eye(2))
        plant = lg.LQG(A, B[:, :2], np.eye(2), R=0.1 * np.eye(2), **noise)
        if is_measured:
            plant = lg.measure_disturbance(plant, B[:, 2:], size=10.0, noise=0.05, decay=0.999)
        return lg.systems.delay_input(plant, delay, longest=3)

    ranges = {"capacity": (0.5, 1.5), "wall": (5, 15), "delay": [0, 1, 2, 3]}
    family = lg.offset_free(lg.ParameterBox(build, ranges), load=1.0, drift=0.02)
    return Integrated(ModelBank(family.grid(3).systems))


@pytest.mark.slow
@pytest.mark.parametrize("truth", [(0.5, 5.0, 0), (1.5, 15.0, 3), (0.8, 8.0, 2), (1.2, 6.0, 3)])
def test_two_rooms_hold_their_temperatures_through_delays_weather_and_guests(truth):
    with_thermometer, without = (heat(heating(is_measured=each), *truth) for each in (True, False))
    assert with_thermometer < 0.1  # K
    assert with_thermometer < 0.5 * without
