import math

import jax
import numpy as np
import pytest
from springs import FAMILY
from ten_models import ten_models

import lqgap
from lqgap.simulators import Finite, check_assumptions
from lqgap.systems import filter_matrix
from lqgap.theory.constants.corrected import corrected_constants
from lqgap.theory.constants.covering import (
    log_cover_of_matrices,
    log_cover_of_parameters,
    measured_cover,
    parameter_slope,
    sensitivities,
)
from lqgap.theory.constants.norms import actual_norms, uniform_norms
from lqgap.theory.constants.samples import draw_samples, target_means


@pytest.fixture(scope="module")
def scene():
    report = check_assumptions(ten_models())
    norms = actual_norms(uniform_norms(report), report)
    return norms, corrected_constants(norms, horizon=1000.0, delta=1e-3, C_w=1.0)


def nudged(seed, size):
    """Two near plants of the reference class, and the largest change of a matrix."""
    rng = np.random.default_rng(seed)
    plant = ten_models()[int(rng.integers(10))]
    changes = [rng.normal(size=X.shape) for X in (plant.A, plant.B, plant.C)]
    scale = size / max(np.linalg.norm(X, 2) for X in changes)
    A, B, C = (X + scale * d for X, d in zip((plant.A, plant.B, plant.C), changes, strict=True))
    return plant, lqgap.LQG(A, B, C)


def test_no_quantity_changes_faster_than_its_constant(scene, seed):
    size = 1e-5
    plant, other = nudged(seed, size)
    ours, theirs = lqgap.solve(plant), lqgap.solve(other)
    constants = sensitivities(*scene)
    for name, change in {
        "C_Sigma": ours.Sigma - theirs.Sigma,
        "C_S": ours.S - theirs.S,
        "C_L": ours.L - theirs.L,
        "C_A": filter_matrix(ours, plant) - filter_matrix(theirs, other),
    }.items():
        assert 0 < np.linalg.norm(change, 2) <= constants[name] * size


@pytest.mark.slow
def test_no_target_changes_faster_than_c_f(scene, seed):
    """On histories of real runs, which lie well within the bounds that C_f is made for."""
    size, members = 1e-5, ten_models()
    samples = draw_samples(members, length=6, num_runs=4, num_steps=8, key=jax.random.key(seed))
    pair = Finite(list(nudged(seed, size)))
    values = target_means(pair.optima(), pair.systems, samples.window, samples.target, length=6)
    assert 0 < np.max(np.abs(values[0] - values[1])) <= sensitivities(*scene)["C_f"] * size


def test_the_formulas_are_logarithms_of_counts(scene):
    norms, _ = scene
    found = log_cover_of_matrices(norms, 2.0, horizon=50.0)
    expected = (4 + 2 + 2) * math.log(1 + 2 * math.sqrt(2) * norms.N_S * 2.0 * 50.0)
    np.testing.assert_allclose(found, expected)
    assert np.isfinite(log_cover_of_matrices(norms, 1e300, horizon=1e100))


def test_parameters_count_instead_of_entries():
    members = FAMILY.grid(3)
    slope = parameter_slope(members.systems, (np.asarray(members.parameters) - [0.5, 1.0]) / [3.5, 4.0])
    expected = 2 * math.log(1 + math.sqrt(2) * slope * 7.0 * 100.0)
    np.testing.assert_allclose(log_cover_of_parameters(members, 7.0, horizon=100.0), expected)
    # The gain alone: dB = B(1) dg, exactly.
    line = Finite([FAMILY.build(stiffness=1.0, gain=g) for g in (1.0, 2.0)], [[1.0], [2.0]])
    exact = np.linalg.norm(FAMILY.build(stiffness=1.0, gain=1.0).B, 2)
    np.testing.assert_allclose(parameter_slope(line.systems, np.array([[1.0], [2.0]])), exact, rtol=1e-12)


def test_a_measured_cover_covers_and_has_no_two_close_members(seed):
    values = np.random.default_rng(seed).uniform(size=(60, 3))
    chosen = measured_cover(values, radius=0.3)
    distances = np.max(np.abs(values[:, None] - values[None, chosen]), axis=2)
    assert np.all(np.min(distances, axis=1) <= 0.3)
    between = distances[chosen] + np.eye(len(chosen))
    assert 1 < len(chosen) < 60
    assert np.all(between > 0.3)
