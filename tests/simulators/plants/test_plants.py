"""What all named families share; the physics of each stands beside its module."""

import functools
import inspect
import itertools

import numpy as np
import pytest

import lqgap
from lqgap.errors import InvalidArgumentError, LqgapError
from lqgap.simulators import ParameterBox, plants

COUNTS = {"racks", "rooms"}  # they set the size, and are no physical quantities

# (states, inputs, outputs), spectral radius of A and J of the nominal member; J None where no reference is known.
NOMINAL = {
    "acc_two_mass": ((4, 1, 1), 1.0, 165.077554),
    "boeing_747": ((4, 2, 4), 0.993, 51.474678),
    "dc_motor": ((2, 1, 1), 0.927, None),
    "double_integrator": ((5, 1, 1), 1.0, None),
    "hanging_pendulum_cart": ((5, 1, 2), 0.993, None),
    "laplacian": ((3, 3, 3), 1.024, 81.823327),
    "mass_spring_damper": ((2, 1, 1), 0.928, 3.915149),
    "overactuated": ((1, 2, 1), 0.9, None),
    "phase_pair": ((2, 1, 1), 1.0, None),
    "spare_actuator": ((1, 2, 1), 0.9, None),
    "thermal_zones": ((3, 3, 3), 0.975, None),
    "two_mass_spring": ((4, 2, 2), 0.950, 15.223735),
    "uav_hover": ((4, 2, 4), 1.0, 26.448061),
    "unknown_sign": ((1, 1, 1), 0.95, 3.0642),
    "web_server": ((2, 2, 2), 0.655, 4.968796),
}


@functools.cache
def family_of(name):
    return plants.FAMILIES[name]()


@pytest.fixture(params=sorted(NOMINAL))
def name(request):
    return request.param


def physical_parameters(name):
    """The arguments that are quantities: not how many there are, nor what is measured."""
    signature = inspect.signature(plants.FAMILIES[name]).parameters
    return {
        key: argument.default
        for key, argument in signature.items()
        if key not in COUNTS and not isinstance(argument.default, str)
    }


def test_the_catalogue_holds_all_families_by_name():
    assert list(plants.FAMILIES) == sorted(NOMINAL)
    assert sorted(plants.__all__) == plants.__all__
    assert {*plants.FAMILIES, "FAMILIES"} == set(plants.__all__)


def test_the_nominal_member_is_that_of_the_literature(name):
    sizes, radius, J = NOMINAL[name]
    plant = family_of(name).nominal()
    assert (plant.num_states, plant.num_inputs, plant.num_outputs) == sizes
    np.testing.assert_allclose(np.abs(np.linalg.eigvals(plant.A)).max(), radius, atol=5e-4)
    optimum = lqgap.solve(plant)
    if J is not None:
        tolerance = 5e-5 if name == "unknown_sign" else 5e-7  # half of the reference's last digit
        np.testing.assert_allclose(optimum.J, J, rtol=1e-9, atol=tolerance)


@pytest.mark.slow
def test_all_corners_of_the_default_uncertainty_have_an_optimum(name):
    family = family_of(name)
    for corner in itertools.product(*(parameter.points(2) for parameter in family.parameters)):
        assert lqgap.solve(family.system(corner)).converged


def test_members_are_built_in_one_compiled_batch(name):
    family = family_of(name)
    assert isinstance(family, ParameterBox)
    assert family.is_traceable


def test_uncertain_by_default_is_what_is_no_number(name):
    uncertain = [key for key, value in physical_parameters(name).items() if isinstance(value, tuple | list)]
    assert family_of(name).names == tuple(uncertain)


def test_every_argument_is_described(name):
    function = plants.FAMILIES[name]
    _, arguments = function.__doc__.split("Args:")
    for key in inspect.signature(function).parameters:
        assert any(key in line.split(": ")[0].split(", ") for line in map(str.strip, arguments.splitlines()))


def test_every_parameter_may_be_fixed_but_not_all(name):
    fixed = {
        parameter.name: int(parameter.middle)
        if parameter.middle == round(parameter.middle)
        else parameter.middle
        for parameter in family_of(name).parameters
    }
    with pytest.raises(InvalidArgumentError, match="no family"):
        plants.FAMILIES[name](**fixed)


def test_every_parameter_may_be_uncertain(name):
    function = plants.FAMILIES[name]
    for key, default in physical_parameters(name).items():
        if not isinstance(default, tuple | list):
            assert key in function(**{key: [default]}).names


@pytest.mark.parametrize("value", ["heavy", float("nan"), (0, float("inf")), None, [[1]]])
def test_every_parameter_is_named_if_it_makes_no_sense(name, value):
    for key in physical_parameters(name):
        with pytest.raises(LqgapError, match=key):
            plants.FAMILIES[name](**{key: value})
