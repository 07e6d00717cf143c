"""Errata of the paper about the optimum of one model: what is printed fails, what replaces it holds."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from random_systems import random_plant

import lqgap
from lqgap.policies import FiniteHorizonLQG, StationaryLQG
from lqgap.simulators import Finite, check_assumptions
from lqgap.systems import bellman_backup, closed_loop_matrix, filter_matrix, predictor_matrix
from lqgap.theory.constants.norms import printed_norms, uniform_norms


def unit_noise(seed, **sizes):
    plant = random_plant(seed, **sizes)
    return lqgap.LQG(plant.A, plant.B, plant.C)


def norm(X):
    return float(np.linalg.norm(np.asarray(X), 2))


def test_e02_the_closed_loop_equations_have_the_other_sign(seed):
    plant = unit_noise(seed)
    o = lqgap.solve(plant)
    loop, Abar = closed_loop_matrix(o, plant), predictor_matrix(o, plant)
    cost, noise = plant.C.T @ plant.C + o.K.T @ o.K, jnp.eye(3) + o.F @ o.F.T
    for X, image, right in ((o.P, loop.T @ o.P @ loop, cost), (o.Sigma, Abar @ o.Sigma @ Abar.T, noise)):
        assert norm(image - X - right) > norm(right)  # as printed
        assert norm(X - image - right) < 1e-9 * norm(X)


def test_e03_constants_of_the_predictor_do_not_bound_powers_of_the_filter_matrix():
    plant = lqgap.LQG([[0.9, 2.0], [0.0, 0.3]], [[0.0], [1.0]], [[1.0, 2.0]])
    report, o = check_assumptions(Finite([plant])), lqgap.solve(plant)
    calA, Abar = filter_matrix(o, plant), predictor_matrix(o, plant)
    assert norm(calA) > 2 * norm(Abar)
    printed, corrected = (uniform_norms(report, certificate=name) for name in ("predictor", "filter"))
    for k in range(1, 6):
        power = jnp.linalg.matrix_power(calA, k)
        assert norm(power) <= corrected.kappa_2 * (1 - corrected.gamma_2) ** k * (1 + 1e-9)
        np.testing.assert_allclose(plant.A @ power, jnp.linalg.matrix_power(Abar, k) @ plant.A, atol=1e-12)
    assert norm(calA) > 2 * printed.kappa_2 * (1 - printed.gamma_2)


def test_e04_the_average_cost_includes_the_noise_of_the_observation(seed):
    plant = unit_noise(seed)
    o = lqgap.solve(plant)
    output_cost = plant.C.T @ plant.Q @ plant.C
    printed = jnp.trace(o.P @ o.L @ plant.C @ o.Sigma) + jnp.trace(output_cost @ o.Sigma_filtered)
    real = lqgap.exact_average_cost(StationaryLQG(plant), plant)
    assert real - printed > 0.9 * jnp.trace(plant.Q)
    np.testing.assert_allclose(printed + jnp.trace(plant.Q @ plant.V), real, rtol=1e-9)


def test_e05_gamma_1_is_the_contraction_factor_itself():
    plant = lqgap.LQG([[0.98]], [[0.1]], [[1.0]])
    report = check_assumptions(Finite([plant]))
    norms = uniform_norms(report)
    P = norm(lqgap.solve(plant).P)
    assert printed_norms(norms).N_P < P <= norms.N_P
    loop = closed_loop_matrix(lqgap.solve(plant), plant)
    assert norm(loop) > 1 - norms.gamma_1
    for k in range(1, 5):
        assert norm(jnp.linalg.matrix_power(loop, k)) <= norms.gamma_1**k * (1 + 1e-12)


def test_e06_the_inverse_lyapunov_operator_has_the_square_of_kappa():
    """X = G Z G^-1 with G = diag(g, 1); the operator's norm is that of its value at the identity, I + XX'."""
    entry, g = 10.0, 20.0
    X = np.array([[0.0, entry], [0.0, 0.0]])
    kappa, gamma = g, 1 - entry / g
    np.testing.assert_allclose(
        np.diag([g, 1.0]) @ np.array([[0, entry / g], [0, 0]]) @ np.diag([1 / g, 1]), X
    )
    inverse = norm(scipy.linalg.solve_discrete_lyapunov(X, np.eye(2)))
    decay = 2 * gamma - gamma**2
    assert kappa / decay < inverse <= kappa**2 / decay


def test_e07_a_and_f_are_controllable_only_if_a_is_invertible():
    plant = lqgap.systems.delay_input(lqgap.LQG([[0.9]], [[1.0]], [[1.0]]), 1)
    o = lqgap.solve(plant)
    assert np.linalg.matrix_rank(np.concatenate([o.F, plant.A @ o.F], axis=1)) < 2
    Abar, both = predictor_matrix(o, plant), np.concatenate([o.F, plant.B], axis=1)
    assert np.linalg.matrix_rank(np.concatenate([both, Abar @ both], axis=1)) == 2


def test_e08_gains_from_the_present_cost_matrix_are_not_optimal(seed):
    plant, horizon = unit_noise(seed), 8
    optimal = FiniteHorizonLQG(plant, horizon)
    P = lqgap.solve_finite(plant, horizon=horizon).P
    gains = [jnp.linalg.solve(plant.R + plant.B.T @ X @ plant.B, plant.B.T @ X @ plant.A) for X in P]
    printed = eqx.tree_at(lambda policy: policy.K, optimal, jnp.stack(gains))
    value = lqgap.solve_finite(plant, horizon=horizon).value
    np.testing.assert_allclose(lqgap.exact_cost(optimal, plant, horizon=horizon), value, rtol=1e-10)
    assert lqgap.exact_cost(printed, plant, horizon=horizon) > value * (1 + 1e-4)


@pytest.mark.parametrize("horizon", [0, 5])
def test_e09_the_optimal_cost_includes_the_noise_of_every_observation(seed, horizon):
    plant = unit_noise(seed)
    f = lqgap.solve_finite(plant, horizon=horizon)
    output_cost = plant.C.T @ plant.Q @ plant.C
    printed = jnp.sum(f.P * (f.Sigma - f.Sigma_filtered)) + jnp.sum(
        output_cost * jnp.sum(f.Sigma_filtered, 0)
    )
    real = lqgap.exact_cost(FiniteHorizonLQG(plant, horizon), plant, horizon=horizon)
    np.testing.assert_allclose(printed + (horizon + 1) * jnp.trace(plant.Q @ plant.V), real, rtol=1e-10)
    assert printed < real - 1


def test_e10_the_cost_above_average_is_the_bias_before_less_the_bias_after(seed):
    plant = unit_noise(seed)
    o = lqgap.solve(plant)
    rng = np.random.default_rng(seed)
    xhat, y = rng.normal(size=3), rng.normal(size=2)
    u = -o.K @ xhat
    cost = y @ plant.Q @ y + u @ plant.R @ u
    before, after = lqgap.systems.bias(o, plant, xhat, y), bellman_backup(o, plant, xhat, y, u) - cost
    np.testing.assert_allclose(cost - o.J, before - after, rtol=1e-9)
    assert abs((cost - o.J) - (after - before)) > 1e-3
