import math

import numpy as np
from eluder_sequences import is_eluder_sequence

from lqgap.theory.constants.eluder import greedy_eluder_sequence, linear_eluder_bound


def test_functions_that_differ_in_one_point_each_have_an_eluder_dimension_of_their_number():
    """f_0 = 0 and f_i = 1 at point i alone: every point is news, and only N - 1 exist."""
    values = np.vstack([np.zeros(6), np.eye(6)])
    sequence = greedy_eluder_sequence(values, epsilon=0.5)
    assert sorted(sequence) == list(range(6))


def test_two_functions_differ_once(seed):
    values = np.random.default_rng(seed).normal(size=(2, 50))
    assert len(greedy_eluder_sequence(values, epsilon=1e-3)) == 1
    assert greedy_eluder_sequence(np.ones((3, 4)), epsilon=1e-3) == []


def test_a_sequence_that_is_found_is_one_and_obeys_the_bounds(seed):
    rng = np.random.default_rng(seed)
    features, samples = rng.normal(size=(12, 4)), rng.normal(size=(4, 80))
    values, epsilon = features @ samples, 1e-2
    sequence = greedy_eluder_sequence(values, epsilon=epsilon)
    scales = np.geomspace(epsilon, np.max(np.abs(values[:, None] - values[None])), 12, endpoint=False)
    assert any(is_eluder_sequence(values, sequence, epsilon=scale) for scale in scales)
    assert 2 <= len(sequence) <= 12 * 11 / 2
    scale = np.max(np.linalg.norm(features, axis=1))
    radius = np.max(np.linalg.norm(samples, axis=0))
    bound = linear_eluder_bound(dimension=4, scale=scale, radius=radius, epsilon=epsilon)
    assert len(sequence) <= bound


def test_a_point_seen_before_is_no_news():
    values = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert not is_eluder_sequence(values, [0, 1], epsilon=0.5)
    assert is_eluder_sequence(values, [1], epsilon=0.5)


def test_the_linear_bound_is_its_formula_also_beyond_double_precision():
    plain = 3 * 5 * math.e / (math.e - 1) * math.log(3 + 3 * (2 * 2.0 * 3.0 / 0.1) ** 2) + 1
    np.testing.assert_allclose(linear_eluder_bound(dimension=5, scale=2.0, radius=3.0, epsilon=0.1), plain)
    assert np.isfinite(linear_eluder_bound(dimension=5, scale=1e200, radius=1e200, epsilon=1e-9))
