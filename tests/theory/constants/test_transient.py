import equinox as eqx
import jax
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.errors import NotConvergedError
from lqgap.simulators import Finite, check_assumptions
from lqgap.simulators.plants import FAMILIES
from lqgap.systems import change_coordinates
from lqgap.theory.constants import transient
from lqgap.theory.constants.norms import contracting, printed_norms, uniform_norms
from lqgap.theory.constants.transient import printed_transient_bound, run_recursions, transients


def shortfall(plant, horizon):
    return float((horizon + 1) * lqgap.solve(plant).J - lqgap.solve_finite(plant, horizon=horizon).value)


def audited(*plants):
    """In coordinates in which the closed loops contract."""
    return contracting(check_assumptions(Finite(list(plants))))


@pytest.mark.parametrize("horizon", [2, 7, 40])
def test_it_is_the_difference_of_the_optimal_costs(seed, horizon):
    plant = random_plant(seed)
    found = transients(audited(plant), horizon=horizon)
    np.testing.assert_allclose(found.at_horizon[0], shortfall(plant, horizon), rtol=1e-9, atol=1e-9)


def judge(members, *, settled=30_000):
    """The limit is D_H of a horizon that leaves no rest, and no horizon exceeds the bound; returns the ratios."""
    report = contracting(check_assumptions(members))
    if report.constants["gamma_1"] >= 1:  # no norm serves all: each in its own
        return np.concatenate([judge(Finite([plant]), settled=settled) for plant in members])
    found = transients(report, horizon=50)
    for horizon in (2, 50, 400, settled):
        values = shortfalls(members, horizon)
        assert np.all(np.abs(values) <= found.bound)
    # (H+1) J* has a rounding error of H J* eps, which the difference to V* keeps.
    slack = settled * 1e-15 * np.max(members.optima().J)
    np.testing.assert_allclose(found.limit, values, rtol=1e-8, atol=slack)
    return found.bound / np.abs(found.limit)


def shortfalls(members, horizon):
    values = jax.jit(
        lambda systems: jax.lax.map(lambda p: lqgap.solve_finite(p, horizon=horizon).value, systems)
    )
    return np.asarray((horizon + 1) * members.optima().J - values(members.systems))


@pytest.mark.slow
def test_limit_and_bound_of_the_golden_plants(golden_plant):
    assert judge(Finite([golden_plant]))[0] < 1000


UNSTABLE = {"acc_two_mass", "double_integrator", "laplacian", "phase_pair", "uav_hover"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FAMILIES) - UNSTABLE))
def test_limit_and_bound_of_the_stable_plants_of_every_family(name):
    members = FAMILIES[name]().grid(2)
    assert np.all(np.max(np.abs(np.linalg.eigvals(members.systems.A)), axis=1) < 1)
    assert np.all(np.isfinite(judge(members)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(UNSTABLE - {"phase_pair"}))
def test_limit_and_bound_of_plants_that_only_their_optimum_stabilises(name):
    assert np.all(np.isfinite(judge(FAMILIES[name]().grid(2))))


def test_it_grows_with_the_horizon_from_zero_if_the_state_starts_as_its_noise():
    plant = random_plant(1)
    plant = lqgap.LQG(plant.A, plant.B, plant.C, Q=plant.Q, R=plant.R, W=plant.W, V=plant.V, S0=plant.W)
    report = audited(plant)
    values = [transients(report, horizon=h).at_horizon[0] for h in (2, 5, 10, 20)]
    assert values[0] >= 0
    assert np.all(np.diff(values) >= -1e-12)
    assert values[-1] <= transients(report, horizon=20).limit[0] + 1e-12


def test_coordinates_change_the_bound_only(seed):
    plant = random_plant(seed)
    other = change_coordinates(plant, np.random.default_rng(seed).normal(size=(3, 3)))
    ours, theirs = (transients(check_assumptions(Finite([p])), horizon=6) for p in (plant, other))
    np.testing.assert_allclose(ours.limit, theirs.limit, rtol=1e-7)
    np.testing.assert_allclose(ours.at_horizon, theirs.at_horizon, rtol=1e-7)


def test_without_contraction_in_these_coordinates_there_is_no_bound():
    plant = change_coordinates(random_plant(0), np.diag([1.0, 30.0, 1e-2]))
    report = check_assumptions(Finite([plant]))
    assert report.constants["gamma_1"] > 1
    assert transients(report, horizon=5).bound[0] == np.inf


def test_the_suprema_are_below_the_formulas_for_a_definite_first_covariance(seed):
    """b_0 by its formula, ||Sigma - S0|| (||Sigma|| / lambda_min(S0))^1/2, holds where S0 <= Sigma."""
    plant = random_plant(seed)
    plant = lqgap.LQG(plant.A, plant.B, plant.C, Q=plant.Q, R=plant.R, W=plant.W, V=plant.V, S0=plant.W)
    members = Finite([plant])
    run = run_recursions(members.optima(), members.systems)
    formula = np.sqrt(np.linalg.norm(members.optima().Sigma[0], 2) / np.linalg.eigvalsh(plant.S0)[0])
    assert run.filter_growth[0] <= formula * (1 + 1e-9)


def test_a_loop_that_hardly_settles_is_named(monkeypatch):
    def unsettled(optima, systems):
        return eqx.tree_at(lambda run: run.settled, run_recursions(optima, systems), np.array([False]))

    monkeypatch.setattr(transient, "run_recursions", unsettled)
    with pytest.raises(NotConvergedError, match=r"member 0 .* has not settled after"):
        transients(audited(random_plant(0)), horizon=5)


def test_the_printed_bound_has_the_printed_structure():
    report = audited(lqgap.LQG([[0.5]], [[1.0]], [[1.0]]))
    norms = printed_norms(uniform_norms(report, certificate="predictor"))
    optimum = report.members.optima()
    b_0 = (1 + norms.N_Sigma) * norms.N_Sigma**0.5
    c_0 = float(1 - optimum.L[0, 0, 0]) * b_0
    a_0 = (
        float(optimum.P[0, 0, 0]) - 1
    )  # closed loops of one state contract: the largest product is the empty one
    expected = a_0 / (1 - norms.gamma_1) + norms.kappa_2 * (b_0 + c_0) / norms.gamma_2
    np.testing.assert_allclose(printed_transient_bound(report, norms), expected, rtol=1e-9)
