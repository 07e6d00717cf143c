import importlib
import sys

import equinox as eqx
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.evaluation import closed_loop_radius
from lqgap.interop import from_control, policy_from_control, to_control
from lqgap.policies import LinearDynamic, StationaryLQG


@pytest.fixture(scope="module")
def control():
    return importlib.import_module("control")  # slow to import


def test_a_plant_goes_out_and_comes_back_the_same(seed):
    plant = random_plant(seed)
    weights = {name: getattr(plant, name) for name in ("Q", "R", "W", "V", "S0")}
    again, sampling_time = from_control(to_control(plant, sampling_time=0.3), **weights)
    assert eqx.tree_equal(again, plant)
    assert sampling_time == 0.3


def test_a_policy_goes_out_and_comes_back_the_same(seed):
    policy = StationaryLQG(random_plant(seed))
    again, sampling_time = policy_from_control(to_control(policy, sampling_time=0.3))
    assert eqx.tree_equal(again.at(0), policy.at(0))
    assert sampling_time == 0.3


def test_a_static_gain_comes_back_static():
    gain = LinearDynamic(Dc=[[1.0, -2.0]])
    again, _ = policy_from_control(to_control(gain, sampling_time=1))
    assert eqx.tree_equal(again, gain)


def test_the_step_response_is_that_of_the_plant(control, seed):
    plant = random_plant(seed)
    times = 0.1 * np.arange(20)
    u = np.ones((2, 20))
    theirs = control.forced_response(to_control(plant, sampling_time=0.1), times, u).outputs
    x, ours = np.zeros(3), []
    for column in u.T:
        ours.append(plant.C @ x)
        x = plant.A @ x + plant.B @ column
    np.testing.assert_allclose(theirs, np.transpose(ours), rtol=1e-10, atol=1e-12)


def test_positive_feedback_closes_the_loop(control, seed):
    plant = random_plant(seed, radius=1.1)
    policy = StationaryLQG(plant)
    loop = control.feedback(*(to_control(part, sampling_time=0.1) for part in (plant, policy)), sign=1)
    np.testing.assert_allclose(np.max(np.abs(loop.poles())), closed_loop_radius(policy, plant), rtol=1e-9)


def test_a_transfer_function_becomes_a_plant_with_its_step_response(control):
    transfer = control.tf([0.2, 0.1], [1, -1.2, 0.5], 0.25)
    plant, sampling_time = from_control(transfer, R=[[0.1]])
    assert sampling_time == 0.25
    np.testing.assert_array_equal(plant.R, [[0.1]])
    times = 0.25 * np.arange(15)
    theirs, ours = (
        control.step_response(system, times).outputs.ravel()
        for system in (transfer, to_control(plant, sampling_time=0.25))
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda control: control.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]]),
            r"continuous time.*control.sample_system.*zero_order_hold",
        ),
        (
            lambda control: control.ss([[0.5]], [[1.0]], [[1.0]], [[0.0]], True),
            "no sampling time .dt is True",
        ),
        (
            lambda control: control.ss([[0.5]], [[1.0]], [[1.0]], [[0.0]], None),
            "no sampling time .dt is None",
        ),
        (lambda control: control.ss([[0.5]], [[1.0]], [[1.0]], [[2.0]], 0.1), "direct feedthrough"),
        (lambda control: control.tf([1, 0, 0], [1, -0.5], 0.1), "no state-space form"),
        (lambda control: "1/s", "is a str"),
    ],
)
def test_what_is_no_plant_is_refused_with_what_to_do(control, make, message):
    with pytest.raises(lqgap.InvalidSystemError, match=message):
        from_control(make(control))


def test_without_python_control_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(lqgap.LqgapError, match=r"pip install 'lqgap\[control\]'"):
        to_control(random_plant(0), sampling_time=0.1)
