import numpy as np
import pytest
import scipy

from lqgap.linalg import undetectable_modes, unstabilizable_modes
from lqgap.linalg.modes import describe_modes

A = np.diag([0.5, 1.0, 2.0])


def test_only_unstable_or_marginal_modes_out_of_reach_are_named():
    assert unstabilizable_modes(A, [[0.0], [1.0], [1.0]]) == []
    assert unstabilizable_modes(A, [[1.0], [0.0], [1.0]]) == [1.0]
    assert unstabilizable_modes(A, np.zeros((3, 1))) == [1.0, 2.0]
    assert undetectable_modes(A, [[1.0, 1.0, 0.0]]) == [2.0]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_reach_depends_neither_on_units_nor_on_coordinates(seed, scale):
    T = scipy.stats.ortho_group.rvs(3, random_state=seed)
    turned = T @ A @ T.T
    assert unstabilizable_modes(turned, scale * T @ [[0.0], [1e-3], [1e-3]]) == []
    [mode] = unstabilizable_modes(turned, scale * T @ [[1.0], [0.0], [1.0]])
    np.testing.assert_allclose(mode, 1.0, rtol=1e-9)


def test_a_double_mode_needs_two_inputs():
    assert unstabilizable_modes(np.eye(2), [[1.0], [1.0]]) == [1.0]  # the difference of the two states
    np.testing.assert_allclose(unstabilizable_modes(np.eye(3), [[1.0], [1.0], [1.0]]), [1, 1], rtol=1e-12)
    assert unstabilizable_modes(np.eye(2), np.eye(2)) == []


def test_a_reachable_mode_of_the_same_eigenvalue_is_not_named(seed):
    """A position moved by the input and by a constant load: both have the eigenvalue 1, in one Jordan block."""
    A, B = np.array([[1.0, 0.1, 0.0], [0.0, 0.9, 0.2], [0.0, 0.0, 1.0]]), np.array([[0.0], [1.0], [0.0]])
    T = scipy.stats.ortho_group.rvs(3, random_state=seed)
    [load] = unstabilizable_modes(T @ A @ T.T, T @ B)
    np.testing.assert_allclose(load, 1, rtol=1e-9)
    assert undetectable_modes(A, [[1.0, 0.0, 0.0]]) == []  # its effect on the position shows the load


def test_modes_are_described_for_people():
    assert describe_modes([2 + 0j, 1 + 0j, 0.8 + 0.9j]) == "modes 2, 1 (marginal), 0.8+0.9j of A are"
    assert describe_modes([1.02 + 0j]) == "mode 1.02 of A is"


def test_balancing_sees_through_badly_chosen_units():
    A = np.array([[1.1, 0.3, 0.2], [0.2, 0.7, 0.1], [0.3, 0.1, 0.5]])
    units = np.diag([1.0, 1e5, 1e-5])
    scaled = units @ A @ np.linalg.inv(units)
    assert unstabilizable_modes(scaled, units @ [[1.0], [0.5], [0.2]]) == []
    assert undetectable_modes(scaled, [[1.0, 0.2, 0.3]] @ np.linalg.inv(units)) == []
