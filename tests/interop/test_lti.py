"""The same laws for python-control and for SciPy, and what each of them has of its own."""

import functools
import importlib
import sys

import equinox as eqx
import numpy as np
import pytest
import scipy
from random_systems import random_plant

import lqgap
from lqgap.evaluation import closed_loop_radius
from lqgap.interop import from_control, from_dlti, policy_from_control, policy_from_dlti, to_control, to_dlti
from lqgap.policies import LinearDynamic, StationaryLQG


@functools.cache
def control():
    return importlib.import_module("control")  # slow to import


TOOLS = {
    "control": (from_control, policy_from_control, to_control),
    "scipy": (from_dlti, policy_from_dlti, to_dlti),
}


@pytest.fixture(params=TOOLS)
def tool(request):
    return request.param


def forced_response(tool, system, u):
    """The outputs to a table of inputs, rows (time, input), by the tool itself."""
    if tool == "scipy":
        return scipy.signal.dlsim(system, u)[1]
    return control().forced_response(system, system.dt * np.arange(len(u)), u.T, squeeze=False).outputs.T


def test_a_plant_goes_out_and_comes_back_the_same(tool, seed):
    read, _, write = TOOLS[tool]
    plant = random_plant(seed)
    weights = {name: getattr(plant, name) for name in ("Q", "R", "W", "V", "S0")}
    again, sampling_time = read(write(plant, sampling_time=0.3), **weights)
    assert eqx.tree_equal(again, plant)
    assert sampling_time == 0.3


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_a_policy_goes_out_and_comes_back_the_same(tool, kind):
    _, read, write = TOOLS[tool]
    policy = (
        StationaryLQG(random_plant(0), filters="steady")
        if kind == "dynamic"
        else LinearDynamic(Dc=[[1.0, -2.0]])
    )
    again, sampling_time = read(write(policy, sampling_time=0.3))
    assert eqx.tree_equal(again.at(0), policy.at(0))
    assert sampling_time == 0.3


def test_the_step_response_is_that_of_the_plant(tool, seed):
    plant = random_plant(seed)
    theirs = forced_response(tool, TOOLS[tool][2](plant, sampling_time=0.1), np.ones((20, 2)))
    x, ours = np.zeros(3), []
    for _ in range(20):
        ours.append(plant.C @ x)
        x = plant.A @ x + plant.B @ np.ones(2)
    np.testing.assert_allclose(theirs, ours, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("tool", "make"),
    [
        ("control", lambda: control().tf([0.2, 0.1], [1, -1.2, 0.5], 0.25)),
        ("scipy", lambda: scipy.signal.dlti([0.2, 0.1], [1, -1.2, 0.5], dt=0.25)),
        ("scipy", lambda: scipy.signal.dlti([-0.5], [0.6, 0.6], 0.2, dt=0.25)),
    ],
    ids=["control, transfer function", "scipy, transfer function", "scipy, zeros and poles"],
)
def test_every_form_becomes_a_plant_with_its_step_response(tool, make):
    system = make()
    read, _, write = TOOLS[tool]
    plant, sampling_time = read(system, R=[[0.1]])
    assert sampling_time == 0.25
    np.testing.assert_array_equal(plant.R, [[0.1]])
    ours, theirs = (
        forced_response(tool, each, np.ones((15, 1))) for each in (write(plant, sampling_time=0.25), system)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_positive_feedback_closes_the_loop(seed):
    plant = random_plant(seed, radius=1.1)
    policy = StationaryLQG(plant, filters="steady")
    loop = control().feedback(*(to_control(part, sampling_time=0.1) for part in (plant, policy)), sign=1)
    np.testing.assert_allclose(np.max(np.abs(loop.poles())), closed_loop_radius(policy, plant), rtol=1e-9)


@pytest.mark.parametrize(
    ("read", "make", "message"),
    [
        (
            from_control,
            lambda: control().ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]]),
            r"continuous time.*dt=0.1",
        ),
        (
            from_control,
            lambda: control().ss([[0.5]], [[1.0]], [[1.0]], [[0.0]], True),
            "no sampling time .dt is True",
        ),
        (
            from_control,
            lambda: control().ss([[0.5]], [[1.0]], [[1.0]], [[0.0]], None),
            "no sampling time .dt is None",
        ),
        (from_control, lambda: control().ss([[0.5]], [[1.0]], [[1.0]], [[2.0]], 0.1), "direct feedthrough"),
        (from_control, lambda: control().tf([1, 0, 0], [1, -0.5], 0.1), "no state-space form"),
        (from_control, lambda: "1/s", "is a str"),
        (
            from_dlti,
            lambda: scipy.signal.lti([1.0], [1.0, 1.0]),
            r"continuous time.*dt=0.1",
        ),
        (from_dlti, lambda: scipy.signal.dlti([1.0], [1.0, -0.5]), "no sampling time .dt is True"),
        (from_dlti, lambda: scipy.signal.dlti([1.0, 0.0], [1.0, -0.5], dt=0.1), "direct feedthrough"),
        (from_dlti, lambda: scipy.signal.dlti([1.0, 0.0, 0.0], [1.0, -0.5], dt=0.1), "no state-space form"),
        (from_dlti, lambda: ([1.0], [1.0, -0.5], 0.1), "is a tuple"),
    ],
)
def test_what_is_no_plant_is_refused_with_what_to_do(read, make, message):
    with pytest.raises(lqgap.InvalidSystemError, match=message):
        read(make())


def test_without_python_control_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(lqgap.LqgapError, match=r"pip install 'lqgap\[control\]'"):
        to_control(random_plant(0), sampling_time=0.1)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_system_in_continuous_time_is_sampled(tool):
    A, B, C = [[0.0, 1.0], [-2.0, -0.3]], [[0.0], [1.5]], [[1.0, 0.0]]
    make = control().ss if tool == "control" else scipy.signal.StateSpace
    system, W = make(A, B, C, [[0.0]]), np.diag([0.0, 0.2])
    weights = {"W": W, "Qx": np.eye(2), "N": [[0.1], [0.0]]}
    plant, dt = TOOLS[tool][0](system, dt=0.1, delay=0.04, **weights)
    expected = lqgap.discretize(lqgap.LQG(A, B, C, **weights), dt=0.1, delay=0.04)
    assert dt == 0.1
    assert eqx.tree_equal(plant, expected, rtol=1e-12, atol=1e-14)
    with pytest.raises(lqgap.InvalidSystemError, match=r"in steps of 0\.1 already"):
        TOOLS[tool][0](TOOLS[tool][2](random_plant(0), sampling_time=0.1), dt=0.1)
    with pytest.raises(lqgap.InvalidSystemError, match="sample it first"):
        TOOLS[tool][1](system)
