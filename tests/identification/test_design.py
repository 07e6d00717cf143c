import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import lqgap as lg
from lqgap.identification import innovation_form
from lqgap.identification.design import design
from lqgap.identification.efficient import flatten, unflatten

NAMES = ("mass_spring_damper", "web_server", "two_mass_spring", "boeing_747", "laplacian")


@functools.cache
def solved(name):
    """Plant, optimum, innovation form and its design."""
    how = {"measured": "speed_and_attitude"} if name == "boeing_747" else {}
    plant = getattr(lg.plants, name)(**how).nominal()
    optimum = lg.solve(plant)
    return (
        plant,
        optimum,
        innovation_form(optimum, plant),
        make(innovation_form(optimum, plant), plant.Q, plant.R),
    )


make = jax.jit(lambda form, Q, R: design(form, Q=Q, R=R))


@pytest.mark.parametrize("name", NAMES)
def test_gain_and_cost_are_those_of_the_optimum(name):
    plant, optimum, _, found = solved(name)
    np.testing.assert_allclose(found.J, optimum.J, rtol=1e-9)
    np.testing.assert_allclose(found.G @ plant.A, optimum.K, rtol=1e-7, atol=1e-9)
    assert found.is_sound


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_the_central_difference_of_the_cost_and_of_no_change_of_coordinates(name):
    plant, _, form, found = solved(name)
    theta, g = flatten(form), np.asarray(flatten(found.cost_gradient(Q=plant.Q)))
    draws = np.random.default_rng(0)
    for _ in range(3):
        direction = jnp.asarray(draws.normal(size=theta.shape) * (1 + np.abs(theta)))
        step = 1e-6
        ahead, behind = (
            float(make(unflatten(theta + sign * step * direction, form), plant.Q, plant.R).J)
            for sign in (1, -1)
        )
        np.testing.assert_allclose(g @ direction, (ahead - behind) / (2 * step), rtol=2e-5)
    T = draws.normal(size=form.A.shape)
    A, B, C, F = (np.asarray(part) for part in (form.A, form.B, form.C, form.F))
    along = np.concatenate([part.ravel() for part in (T @ A - A @ T, T @ B, -C @ T, T @ F)])
    assert abs(g @ along) < 1e-7 * np.linalg.norm(g) * np.linalg.norm(along)


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_loop_on_the_plant_itself_has_the_spectra_of_control_and_filter(name):
    plant, optimum, form, found = solved(name)
    expected = max(
        np.max(np.abs(np.linalg.eigvals(np.asarray(matrix))))
        for matrix in (plant.A - plant.B @ optimum.K, form.Abar)
    )
    np.testing.assert_allclose(found.loop_radius(form), expected, rtol=1e-6)


def test_the_gain_is_that_of_scipy():
    plant, _, form, found = solved("two_mass_spring")
    A, B, C, Q, R = (np.asarray(part) for part in (plant.A, plant.B, plant.C, plant.Q, plant.R))
    P = scipy.linalg.solve_discrete_are(A, B, C.T @ Q @ C, R)
    np.testing.assert_allclose(found.G, np.linalg.solve(R + B.T @ P @ B, B.T @ P), rtol=1e-7)
    assert form.order == 4


def test_a_plant_that_is_not_finite_is_not_sound():
    plant, _, form, _ = solved("mass_spring_damper")
    broken = unflatten(flatten(form).at[0].set(jnp.nan), form)
    assert not make(broken, plant.Q, plant.R).is_sound
