import numpy as np
import pytest
from springs import FAMILY
from ten_models import ten_models

import lqgap
from lqgap.errors import InvalidArgumentError, NotStabilizableError
from lqgap.simulators import Finite, check_assumptions
from lqgap.theory.constants.norms import actual_norms, contracting, printed_norms, uniform_norms


@pytest.fixture(scope="module")
def report():
    return check_assumptions(ten_models())


def test_every_member_obeys_them(report):
    uniform = uniform_norms(report, certificate="predictor")
    actual = actual_norms(uniform, report)
    optima, systems = report.members.optima(), report.members.systems
    for name in ("P", "Sigma", "L"):
        largest = max(np.linalg.norm(X, 2) for X in getattr(optima, name))
        np.testing.assert_allclose(getattr(actual, f"N_{name}"), largest, rtol=1e-12)
        assert largest <= getattr(uniform, f"N_{name}")
    for A in systems.A:
        powers = sum(np.linalg.norm(np.linalg.matrix_power(A, k), 2) for k in range(200))
        assert powers <= uniform.growth


def test_the_certificate_is_that_of_the_matrix_it_is_named_after(report):
    for certificate, matrix in (
        ("filter", lqgap.systems.filter_matrix),
        ("predictor", lqgap.systems.predictor_matrix),
    ):
        norms = uniform_norms(report, certificate=certificate)
        for plant in report.members:
            X = matrix(lqgap.solve(plant), plant)
            for k in range(1, 12):
                power = np.linalg.norm(np.linalg.matrix_power(X, k), 2)
                assert power <= norms.kappa_2 * (1 - norms.gamma_2) ** k
    with pytest.raises(InvalidArgumentError, match="certificate is 'both'"):
        uniform_norms(report, certificate="both")


def test_coordinates_are_changed_only_where_it_helps(report):
    assert contracting(report) is report
    springs = check_assumptions(FAMILY.grid(3))
    assert not uniform_norms(springs).are_usable
    assert uniform_norms(contracting(springs)).are_usable


def test_a_defective_a_has_finite_growth_though_phi_is_infinite():
    defective = check_assumptions(Finite([lqgap.LQG([[0.5, 1.0], [0, 0.5]], [[0], [1.0]], [[1, 0]])]))
    norms = uniform_norms(contracting(defective))
    assert norms.Phi == np.inf
    A = np.array([[0.5, 1.0], [0, 0.5]])
    assert sum(np.linalg.norm(np.linalg.matrix_power(A, k), 2) for k in range(100)) <= norms.growth < np.inf
    assert printed_norms(norms).growth == np.inf


def test_a_member_without_an_optimum_is_named():
    report = check_assumptions(Finite([lqgap.LQG([[1.1]], [[0.0]], [[1.0]])]))
    with pytest.raises(NotStabilizableError, match="member 0"):
        contracting(report)
