import numpy as np
import pytest

import lqgap as lg
from lqgap import Signals

SIZES = {"num_inputs": 2, "num_outputs": 1}


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        (24, ((-24, 24), (-24, 24))),
        ((0, 5), ((0, 5), (0, 5))),
        ([[0, 5], [-1, 1]], ((0, 5), (-1, 1))),
        (np.array([[0.0, 5.0], [-1.0, 1.0]]), ((0, 5), (-1, 1))),
    ],
)
def test_limits_are_a_number_a_pair_or_a_pair_for_each(given, pairs):
    assert Signals(limits=given).of_size(**SIZES).limits == pairs


def test_bounds_are_those_of_deviations_and_rates_those_of_a_step():
    signals = Signals(dt=0.1, limits=[[0, 5], [-1, 1]], rate_limits=[2.0, 30.0], u0=[4.0, 0.5])
    low, high, rate = signals.bounds(num_inputs=2)
    np.testing.assert_allclose([low, high, rate], [[-4, -1.5], [1, 0.5], [0.2, 3]])
    low, high, rate = Signals(dt=0.1, rate_limits=2).bounds(num_inputs=2)
    np.testing.assert_allclose([low, high, rate], [[-np.inf] * 2, [np.inf] * 2, [0.2, 0.2]])
    assert Signals(dt=0.1, u0=[1.0, 2.0]).bounds(num_inputs=2) is None


def test_signals_have_a_hash_whatever_they_are_made_of():
    signals = Signals(inputs=["voltage [V]"], limits=[[-1.0, 1.0]], x0=np.zeros(3))
    assert hash(signals) == hash(Signals(inputs=("voltage [V]",), limits=((-1.0, 1.0),), x0=(0.0, 0.0, 0.0)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"inputs": ["one"]}, "inputs is .*expected 2"),
        ({"y0": [1.0, 2.0]}, "y0 is .*expected 1"),
        ({"limits": [[1, 2]]}, "limits is .*each of 2 inputs"),
        ({"limits": [[2, 1], [0, 1]]}, "limits is"),
        ({"limits": "12"}, "limits is"),
        ({"limits": [1, 5]}, "do not admit u0 = 0"),
        ({"rate_limits": 1.0}, "dt is not known"),
        ({"rate_limits": [1.0, -1.0], "dt": 0.1}, "rate_limits is"),
        ({"dt": 0.0}, "dt is"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_does_not_fit_is_refused(keys, message):
    with pytest.raises(lg.InvalidArgumentError, match=message):
        Signals(**keys).of_size(**SIZES)


def test_built_in_families_keep_the_time_of_a_step_and_the_names_of_signals():
    assert lg.plants.mass_spring_damper().signals == Signals(
        dt=0.3, inputs=["command"], outputs=["position [m]"]
    )
    assert lg.plants.thermal_zones(dt=0.5).signals == Signals(dt=0.5, time_unit="h")
    assert lg.plants.boeing_747().signals.dt == 1
    assert lg.plants.web_server().signals.dt is None
    assert lg.plants.double_integrator(dt=(0.1, 0.2)).signals.dt is None
    for make in lg.plants.FAMILIES.values():
        family = make()
        plant = family.nominal()
        family.signals.of_size(num_inputs=plant.num_inputs, num_outputs=plant.num_outputs)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limits", True),
        ("limits", ["a", "b"]),
        ("x0", [None]),
        ("dt", True),
        ("time_unit", 3),
        ("inputs", [1]),
    ],
)
def test_what_is_no_number_or_no_text_is_refused(name, value):
    with pytest.raises(lg.InvalidArgumentError, match=f"{name} is"):
        Signals(**{"dt": 0.1} | {name: value})


def test_an_array_without_axes_is_a_number_or_an_error():
    assert Signals(u0=np.array(0.5)).u0 == 0.5
    with pytest.raises(lg.InvalidArgumentError, match="u0 is None"):
        Signals(u0=np.array(None))
