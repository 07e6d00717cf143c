import math

import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import directional_difference
from records import record, records
from springs import FAMILY

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.identification import fit as fit_module
from lqgap.identification import fit_parameters
from lqgap.simulators import ParameterBox

THETA = [1.7, 2.4]


def untraceable(stiffness, gain):
    """The same plants by plain Python, which JAX cannot trace."""
    return FAMILY.build(stiffness=math.fsum([stiffness]), gain=math.fsum([gain]))


PYTHON_FAMILY = ParameterBox(untraceable, {"stiffness": (0.5, 4.0), "gain": (1.0, 5.0)})


def likelihood(family, theta, y, u):
    return float(lqgap.log_likelihood(family.system(theta), y, u)[-1])


def test_no_member_nearby_is_more_likely():
    y, u = record(FAMILY.system(THETA), steps=300, seed=0)
    y[17] = np.nan
    found = fit_parameters(FAMILY, y, u)
    np.testing.assert_allclose(found.log_likelihood, likelihood(FAMILY, found.theta, y, u), rtol=1e-10)
    for direction in ([1, 0], [0, 1], [1, 1], [1, -1]):
        for size in (-0.3, -0.01, 0.01, 0.3):
            shifted = found.theta + size * found.standard_errors * np.array(direction)
            assert likelihood(FAMILY, shifted, y, u) < found.log_likelihood
    assert found.values == {"stiffness": found.theta[0], "gain": found.theta[1]}
    assert found.spread < 1e-6  # all starts reach the same


def test_evidence_has_the_slope_of_the_likelihood_and_its_mean_curvature():
    y, u = record(FAMILY.system(THETA), steps=4000, seed=0)
    y[5], y, u = np.nan, jnp.asarray(y), jnp.asarray(u)
    branch = FAMILY.branches[0]

    def at(theta):
        return fit_module._evidence(branch, np.asarray(theta), y, u)

    found = at(THETA)
    np.testing.assert_allclose(found.log_likelihood, likelihood(FAMILY, THETA, y, u), rtol=1e-10)
    for direction in np.eye(2):
        slope = directional_difference(
            lambda theta: float(at(theta).log_likelihood), [np.array(THETA)], [direction]
        )
        np.testing.assert_allclose(found.slope @ direction, slope, rtol=1e-5)
    # Information is the mean of minus the second derivative, whose relative fluctuation is of order 4000^-1/2.
    step = 1e-3
    curvature = [(at(THETA - step * d).slope - at(THETA + step * d).slope) / (2 * step) for d in np.eye(2)]
    np.testing.assert_allclose(curvature, found.information, rtol=0.15, atol=0.05 * np.max(found.information))


@pytest.mark.slow
def test_standard_errors_are_those_of_the_estimates():
    """Squares of (estimate - truth) in units of the covariance have mean 2: 30 records, three standard errors."""
    squares = []
    for y, u in records(FAMILY.system(THETA), steps=2000, seed=3, count=30):
        found = fit_parameters(FAMILY, y, u, num_starts=1)
        error = found.theta - THETA
        squares.append(error @ np.linalg.solve(found.covariance, error))
    assert abs(np.mean(squares) - 2) < 3 * 2 / np.sqrt(30)  # a chi square of 2 degrees has the deviation 2


@pytest.mark.slow
def test_a_family_that_cannot_be_traced_gives_the_same_fit():
    y, u = record(FAMILY.system(THETA), steps=200, seed=1)
    assert not PYTHON_FAMILY.is_traceable
    one, other = fit_parameters(FAMILY, y, u, num_starts=1), fit_parameters(PYTHON_FAMILY, y, u, num_starts=1)
    np.testing.assert_allclose(other.theta, one.theta, atol=1e-3 * one.standard_errors.min())
    np.testing.assert_allclose(other.standard_errors, one.standard_errors, rtol=1e-4)


def test_a_discrete_parameter_is_chosen_and_has_no_standard_error():
    family = lqgap.plants.unknown_sign()
    y, u = record(family.grid(1)[0], steps=100, seed=0)
    found = fit_parameters(family, y, u)
    np.testing.assert_allclose(found.plant.B, family.grid(1)[0].B)
    assert not np.any(found.is_free)
    assert np.all(np.isnan(found.standard_errors))


def test_a_parameter_at_its_end_is_said_to_be():
    y, u = record(FAMILY.system([1.7, 5.0]), steps=2000, seed=0, sigma_u=3.0)
    small = ParameterBox(FAMILY.build, {"stiffness": (0.5, 4.0), "gain": (1.0, 3.0)})
    found = fit_parameters(small, y, u)
    assert found.values["gain"] == 3.0
    np.testing.assert_array_equal(found.is_free, [True, False])
    assert np.isnan(found.standard_errors[1])
    assert np.isfinite(found.standard_errors[0])


def test_what_the_record_does_not_tell_has_an_infinite_error():
    family = ParameterBox(
        lambda gain, colour: FAMILY.build(stiffness=1.0, gain=gain + 0.0 * colour),
        {"gain": (1.0, 5.0), "colour": (0.0, 1.0)},
    )
    found = fit_parameters(family, *record(family.nominal(), steps=200, seed=0), num_starts=1)
    assert np.all(np.isinf(found.standard_errors[found.is_free]))


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    y, u = record(FAMILY.nominal(), steps=20, seed=0)
    with pytest.raises(InvalidArgumentError, match="family is a Finite"):
        fit_parameters(FAMILY.grid(2), y, u)
    with pytest.raises(InvalidArgumentError, match="num_starts is 0"):
        fit_parameters(FAMILY, y, u, num_starts=0)
    with pytest.raises(InvalidArgumentError, match="y has shape"):
        fit_parameters(FAMILY, y[:, 0], u)
    with pytest.raises(InvalidArgumentError, match="u has entries that are NaN"):
        fit_parameters(FAMILY, y, u * np.nan)
