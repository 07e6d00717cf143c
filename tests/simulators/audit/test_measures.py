import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY

import lqgap
from lqgap.simulators import Finite
from lqgap.simulators.audit.measures import controllability, measure_members
from lqgap.systems import delay_input


@pytest.fixture(scope="module")
def measured():
    members = FAMILY.grid(2)
    return members, measure_members(members)


def test_norms_are_those_of_the_members(measured):
    members, figures = measured
    for index, plant in enumerate(members):
        optimum = lqgap.solve(plant)
        np.testing.assert_allclose(figures.norm_P[index], np.linalg.norm(optimum.P, 2), rtol=1e-9)
        np.testing.assert_allclose(
            figures.contraction[index], np.linalg.norm(plant.A - plant.B @ optimum.K, 2), rtol=1e-9
        )
        np.testing.assert_allclose(
            figures.spectral_radius[index], np.max(np.abs(np.linalg.eigvals(plant.A))), rtol=1e-12
        )


def test_transient_growth_is_the_largest_scaled_power(measured):
    members, figures = measured
    A = np.asarray(members[0].A) / figures.spectral_radius[0]
    powers = [np.linalg.norm(np.linalg.matrix_power(A, k), 2) for k in range(61)]
    np.testing.assert_allclose(figures.transient_growth[0], max(powers), rtol=1e-9)


def test_defective_and_nilpotent_matrices_grow_without_bound():
    members = Finite(
        [
            lqgap.LQG(A, [[0.0], [1.0]], [[1.0, 0.0]])
            for A in ([[0.5, 1.0], [0.0, 0.5]], [[0.0, 1.0], [0.0, 0.0]])
        ]
    )
    figures = measure_members(members)
    assert np.all(np.isinf(figures.transient_growth))
    assert np.all(figures.open_loop.gamma > 0)


def test_the_margin_vanishes_exactly_for_uncontrollable_pairs(seed):
    plant = random_plant(seed)
    A, B = np.asarray(plant.A)[None], np.asarray(plant.B)[None]
    assert controllability(A, B)[0] > 1e-3
    hidden = np.diag([0.5, 0.9, 0.3])[None]
    np.testing.assert_allclose(controllability(hidden, np.array([[[1.0], [1.0], [0.0]]])), [0], atol=1e-14)


def test_certificates_bound_the_powers(measured):
    members, figures = measured
    A = np.asarray(members[0].A)
    for k in range(1, 20):
        bound = figures.open_loop.kappa[0] * (1 - figures.open_loop.gamma[0]) ** k
        assert np.linalg.norm(np.linalg.matrix_power(A, k), 2) <= bound * (1 + 1e-9)


def test_noise_free_states_get_the_lyapunov_certificate():
    figures = measure_members(Finite([delay_input(random_plant(0), 2)]))
    assert figures.predictor.gamma[0] > 0
    assert np.isfinite(figures.predictor.kappa[0])


def test_a_member_without_optimum_has_nan_figures_and_spoils_no_other():
    members = Finite([lqgap.LQG([[a]], [[b]], [[1.0]]) for a, b in ((0.5, 1.0), (1.1, 0.0))])
    figures = measure_members(members)
    np.testing.assert_array_equal(figures.has_optimum, [True, False])
    assert np.isnan(figures.norm_K[1])
    assert np.isfinite(figures.norm_K[0])


def test_a_plant_that_does_nothing_is_measured_without_a_warning():
    figures = measure_members(Finite([lqgap.LQG(np.zeros((2, 2)), [[0.0], [0.0]], [[1.0, 0.0]])]))
    np.testing.assert_array_equal(
        [figures.controllability[0], figures.controllability_of_gain[0], figures.control_gramian[0]], 0
    )


GROWTH = {
    "close modes": ([[0.9, 0.01], [0.0, 0.89]], 2**0.5),
    "weakly defective": ([[0.9, 1e-5], [0.0, 0.9]], np.inf),
    "skew rotation": (
        0.9 * np.array([[np.cos(0.02), -100 * np.sin(0.02)], [np.sin(0.02) / 100, np.cos(0.02)]]),
        100.0,
    ),
    "almost nilpotent": ([[1e-200, 1.0], [0.0, 0.0]], np.inf),
}


@pytest.mark.parametrize("name", sorted(GROWTH))
def test_growth_is_bounded_exactly_where_the_dominant_mode_is_not_defective(name):
    A, expected = GROWTH[name]
    figures = measure_members(Finite([lqgap.LQG(A, np.ones((2, 1)), np.ones((1, 2)))]))
    np.testing.assert_allclose(figures.transient_growth[0], expected, rtol=0.02)


def test_the_margin_does_not_depend_on_the_units_of_the_input():
    A = np.array([[[0.5, 0.1], [0.0, 0.7]]])
    B = np.array([[[0.0], [1.0]]])
    np.testing.assert_allclose(controllability(A, B), controllability(A, 1e-9 * B), rtol=1e-9)
