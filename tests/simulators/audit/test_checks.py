import jax
import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY
from ten_models import GOLDEN, ten_models

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import Ball, Finite, ParameterBox, check_assumptions
from lqgap.systems import delay_input


def test_one_plant_is_audited_as_a_class_of_one():
    plant = lqgap.LQG([[0.9]], [[1.0]], [[1.0]])
    assert check_assumptions(plant).constants == check_assumptions(Finite([plant])).constants


def test_the_constants_of_the_reference_class_are_reproduced():
    constants = check_assumptions(ten_models()).constants
    uniform, sharp = GOLDEN["H=10000,uniform"], GOLDEN["H=10000,sharp"]
    names = {"N_S": "NS", "N_K": "NK", "gamma_1": "g1", "kappa_2": "kap", "gamma_2": "g2", "N_P": "NP"}
    for ours, theirs in {**names, "N_Sigma": "NSig", "N_L": "NL"}.items():
        np.testing.assert_allclose(constants[ours], uniform[theirs], rtol=1e-9)
    for ours, theirs in {"norm_P": "NP", "norm_Sigma": "NSig", "norm_L": "NL"}.items():
        np.testing.assert_allclose(constants[ours], sharp[theirs], rtol=1e-9)
    # The certificate of the filter matrix, which bounds powers of (I - LC) A.
    np.testing.assert_allclose(
        [constants["kappa_2_filter"], constants["gamma_2_filter"]], [1.55, 0.499], rtol=5e-3
    )


def test_uniform_bounds_bound():
    constants = check_assumptions(ten_models()).constants
    for bound, actual in (("N_P", "norm_P"), ("N_Sigma", "norm_Sigma"), ("N_L", "norm_L")):
        assert constants[actual] <= constants[bound]


def test_a_spring_family_holds_after_a_change_of_coordinates():
    report = check_assumptions(FAMILY.grid(5))
    assert report.holds_after_repair
    assert report.constants["gamma_1"] > 2
    [contraction] = [check for check in report.checks if "contract" in check.statement]
    assert contraction.as_printed
    assert "audit.repair()" in contraction.remedy
    repaired = check_assumptions(report.repair())
    [contraction] = [check for check in repaired.checks if "contract" in check.statement]
    assert not contraction.remedy
    np.testing.assert_allclose(repaired.constants["gamma_1"], report.contraction.gamma, rtol=1e-6)
    np.testing.assert_allclose(report.repair().optima().J, report.members.optima().J, rtol=1e-8)


@pytest.mark.slow
def test_unstable_members_are_named_and_pruned():
    family = ParameterBox(lambda pole: lqgap.LQG([[pole]], [[1.0]], [[1.0]]), {"pole": (0.5, 1.1)})
    report = check_assumptions(family.grid(4))
    [stable] = [check for check in report.checks if "open loop" in check.statement]
    assert (stable.as_printed, stable.repaired, stable.member) == (False, False, 3)
    assert "rho(A) = 1.1 >= 1: nothing needs to be done for training; the paper's bounds do" in stable.remedy
    assert "audit.prune()" in stable.remedy
    np.testing.assert_allclose(report.prune().parameters[:, 0], [0.5, 0.7, 0.9])
    assert check_assumptions(report.prune()).holds_after_repair


def test_nothing_is_left_of_a_class_that_is_all_unstable():
    report = check_assumptions(Finite([lqgap.LQG([[1.1]], [[1.0]], [[1.0]])]))
    with pytest.raises(InvalidArgumentError, match=r"no member.*may stay for training"):
        report.prune()
    [stable] = [check for check in report.checks if "open loop" in check.statement]
    assert "prune" not in stable.remedy  # it would leave nothing


def test_a_member_without_optimum_is_reported_and_pruned():
    members = Finite([lqgap.LQG([[a]], [[b]], [[1.0]]) for a, b in ((0.5, 1.0), (1.1, 0.0), (0.7, 1.0))])
    report = check_assumptions(members)
    assert "member 1" in report.checks[0].remedy
    assert "not stabilisable" in report.checks[0].remedy
    assert len(report.prune()) == len(report.repair()) == 2
    audit = report
    assert "members.subset(audit.measures.has_optimum)" in audit.checks[0].remedy
    assert len(members.subset(audit.measures.has_optimum)) == 2


@pytest.mark.slow
def test_padded_delay_states_are_reported_but_do_no_harm():
    family = ParameterBox(
        lambda gain, delay: delay_input(lqgap.LQG([[0.9]], [[gain]], [[1.0]]), delay, longest=2),
        {"gain": (0.5, 1.0), "delay": [0, 1, 2]},
    )
    report = check_assumptions(family.grid(2))
    [seen] = [check for check in report.checks if "observable" in check.statement]
    assert (seen.as_printed, seen.repaired) == (False, True)
    assert "padded delay states" in seen.remedy
    [gain] = [check for check in report.checks if "(A, F)" in check.statement]
    assert not gain.as_printed  # a pure delay makes A singular


@pytest.mark.usefixtures("as_users_run_it")
def test_only_a_finite_class_can_be_audited():
    with pytest.raises(InvalidArgumentError, match=r"\.grid\(points\), \.sample"):
        check_assumptions(FAMILY)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_ten_thousand_members_are_audited_in_one_go():
    ball = Ball(random_plant(0, states=4), radius=0.005)
    members = ball.sample(10_000, key=jax.random.key(0))
    report = check_assumptions(members)
    assert report.holds_after_repair
    assert len(report.measures.norm_P) == 10_000


def test_a_class_in_which_no_member_has_an_optimum_is_still_reported():
    report = check_assumptions(Finite([lqgap.LQG([[a]], [[0.0]], [[1.0]]) for a in (1.1, 2.0)]))
    assert not report.holds_after_repair
    assert np.isnan(report.constants["N_K"])
    with pytest.raises(InvalidArgumentError, match="none was found"):
        report.repair()


def test_what_repeated_modes_hide_the_gramian_sees():
    T = np.random.default_rng(0).normal(size=(4, 4))
    A = T @ (0.5 * np.eye(4) + np.eye(4, k=1)) @ np.linalg.inv(T)
    report = check_assumptions(Finite([lqgap.LQG(A, T[:, 2:3], np.ones((1, 4)) @ np.linalg.inv(T))]))
    [reached] = [check for check in report.checks if "controllable; Gram" in check.statement]
    assert not reached.as_printed


def test_uniform_bounds_hold_for_general_noise():
    plants = [lqgap.LQG([[0.5]], [[1.0]], [[1.0]], W=[[w]], V=[[v]]) for w, v in ((100.0, 1.0), (1.0, 0.01))]
    constants = check_assumptions(Finite(plants)).constants
    assert constants["norm_Sigma"] <= constants["N_Sigma"]
    assert constants["norm_L"] <= constants["N_L"]
