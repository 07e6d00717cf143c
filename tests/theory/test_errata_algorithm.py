"""Errata of the paper about LQG-VTR and model selection: what is printed fails, what replaces it holds."""

import math

import jax.numpy as jnp
import numpy as np
import scipy
from random_systems import random_plant
from springs import FAMILY
from ten_models import ten_models

import lqgap
from lqgap.linalg import inverse_sqrt_psd
from lqgap.simulators import Finite, check_assumptions
from lqgap.systems import (
    clipped_beliefs,
    filter_matrix,
    predictor_markov_parameters,
    predictor_matrix,
    steady_beliefs,
)
from lqgap.theory import constants
from lqgap.theory.constants.corrected import confidence_radius
from lqgap.theory.constants.norms import uniform_norms
from lqgap.theory.constants.printed import printed_radius


def norm(X):
    return float(np.linalg.norm(np.asarray(X), 2))


def test_e12_the_window_of_the_pseudo_code_forgets_the_first_observation(seed):
    plant, rng, t = random_plant(seed), np.random.default_rng(seed), 3
    o = lqgap.solve(plant)
    y, u = rng.normal(size=(t + 1, 2)), rng.normal(size=(t + 1, 2))
    calA, keep = filter_matrix(o, plant), jnp.eye(3) - o.L @ plant.C
    power = [jnp.linalg.matrix_power(calA, k) for k in range(t + 1)]
    printed = sum(power[s - 1] @ (keep @ plant.B @ u[t - s] + o.L @ y[t - s + 1]) for s in range(1, t + 1))
    belief = steady_beliefs(o, plant, y, u)[t]
    forgotten = power[t] @ o.L @ y[0]
    assert norm(belief - printed) > 1e-4
    np.testing.assert_allclose(printed + forgotten, belief, atol=1e-10)
    np.testing.assert_allclose(clipped_beliefs(o, plant, y, u, length=t + 2)[t], belief, atol=1e-10)


def test_e14_targets_are_sub_exponential_and_not_sub_gaussian(seed):
    """A sub-Gaussian variable has a finite cumulant at every scale; that of a target ends."""
    plant = random_plant(seed)
    o = lqgap.solve(plant)
    target = lqgap.systems.value_target(o, plant, np.ones(3), np.ones(2))
    m = plant.C @ (plant.A @ np.ones(3) + plant.B @ np.ones(2))
    edge = 0.5 / max(np.linalg.eigvals(np.asarray(target.Phi @ o.S)).real)
    assert jnp.isfinite(target.cumulant(jnp.asarray(0.99 * edge), m, o.S))
    assert target.cumulant(jnp.asarray(1.01 * edge), m, o.S) == jnp.inf


def test_e15_the_explicit_number_of_episodes_is_far_below_the_printed_form():
    column = constants(ten_models(), horizon=1e4, C_w=100.0)["corrected, actual"]
    assert column["Kbar"] < column["Kbar_eluder"] / 50


def exclusion_probability(radius, *, D, steps):
    """Two constant functions: the truth D / 2 and another so far off that, as the estimate, it shuts the truth out.

    Y is 0 or D with even chance; least squares prefers the other if the mean of Y is nearer to it.
    """
    distance = math.sqrt(radius / steps) * (1 + 1e-12)
    most = math.floor(steps * (0.5 + 0.5 * distance / D))
    return scipy.stats.binom.sf(most, steps, 0.5)


def test_e16_the_printed_radius_fails_more_often_than_delta():
    D, steps, delta = 1e6, 1000, 1e-3
    arguments = {"horizon": float(steps), "log_count": math.log(2), "delta": delta}
    assert exclusion_probability(printed_radius(D, 0.0, **arguments), D=D, steps=steps) > 30 * delta
    corrected = confidence_radius(D, 0.0, variance=D**2 / 4, scale=0.0, **arguments)  # Y is within [0, D]
    assert exclusion_probability(corrected, D=D, steps=steps) < delta


def test_e17_two_members_of_a_confidence_set_may_be_four_beta_apart():
    beta, estimate = 2.0, np.array([1.0, -1.0, 0.5])
    direction = np.array([1.0, 2.0, 2.0]) / 3
    one, other = estimate + math.sqrt(beta) * direction, estimate - math.sqrt(beta) * direction
    for f in (one, other):
        assert np.sum((f - estimate) ** 2) <= beta * (1 + 1e-12)
    distance = np.sum((one - other) ** 2)
    assert distance > 2 * beta
    assert distance <= 4 * beta * (1 + 1e-12)


def test_e18_the_bias_of_the_regression_is_that_of_the_prediction_over_its_window(seed):
    """y_t = M phi_t + e_t + C Abar^l xhat_{t-l|t-l-1}, to rounding; with the state in its place it fails."""
    plant, rng, length, steps = random_plant(seed), np.random.default_rng(seed), 3, 8
    o = lqgap.solve(plant)
    A, B, C, L = (np.asarray(X) for X in (plant.A, plant.B, plant.C, o.L))
    of_inputs, of_outputs = (np.asarray(X) for X in predictor_markov_parameters(o, plant, length=length))
    x, predicted = rng.normal(size=3), np.zeros(3)
    states, predictions, ys, us = [], [], [], []
    for _ in range(steps):
        y, u = C @ x + rng.normal(size=2), rng.normal(size=2)
        states.append(x)
        predictions.append(predicted)
        ys.append(y)
        us.append(u)
        predicted = A @ (predicted + L @ (y - C @ predicted)) + B @ u
        x = A @ x + B @ u + rng.normal(size=3)
    t = steps - 1
    innovation = ys[t] - C @ predictions[t]
    of_window = sum(of_outputs[k] @ ys[t - 1 - k] + of_inputs[k] @ us[t - 1 - k] for k in range(length))
    rest = C @ np.linalg.matrix_power(np.asarray(predictor_matrix(o, plant)), length)
    np.testing.assert_allclose(of_window + innovation + rest @ predictions[t - length], ys[t], atol=1e-9)
    assert norm((of_window + innovation + rest @ states[t - length] - ys[t])[:, None]) > 1e-4


def test_e19_the_truncation_length_goes_by_one_minus_gamma_2():
    plant, horizon = FAMILY.build(stiffness=0.5, gain=1.0), 1000
    o = lqgap.solve(plant)
    norms = uniform_norms(check_assumptions(Finite([plant])), certificate="predictor")
    printed = math.ceil(math.log(norms.kappa_2 * horizon) / math.log(1 / norms.gamma_2))
    corrected = math.ceil(math.log(norms.kappa_2 * horizon**2) / math.log(1 / (1 - norms.gamma_2)))
    rest = [norm(jnp.linalg.matrix_power(predictor_matrix(o, plant), k)) for k in (printed, corrected)]
    assert rest[0] > 1 / horizon**2
    assert rest[1] <= 1 / horizon**2


def realize(inputs, outputs, *, states, depth):
    """The textbook realisation of exact predictor Markov parameters C Abar^k B and C Abar^k F."""
    p, m = inputs.shape[1:]

    def hankel(blocks, shift):
        return np.block([[blocks[i + j + shift] for j in range(depth)] for i in range(depth)])

    now, later = (np.concatenate([hankel(outputs, s), hankel(inputs, s)], axis=1) for s in (0, 1))
    U, s, Vt = np.linalg.svd(now)
    observe, control = U[:, :states] * np.sqrt(s[:states]), np.sqrt(s[:states])[:, None] * Vt[:states]
    C, F, B = observe[:p], control[:, :p], control[:, depth * p : depth * p + m]
    Abar = np.linalg.pinv(observe) @ later @ np.linalg.pinv(control)
    return Abar + F @ C, B, C, F


def test_e20_no_unitary_matrix_aligns_a_realisation_with_the_model(seed):
    """Unitary matrices keep singular values; those of the realisation of exact data are others."""
    plant = random_plant(seed)
    plant = lqgap.LQG(plant.A, plant.B, plant.C)
    markov = predictor_markov_parameters(lqgap.solve(plant), plant, length=9)
    A, B, C, F = realize(*(np.asarray(X) for X in markov), states=3, depth=4)
    distance = np.max(np.abs(np.linalg.svd(A)[1] - np.linalg.svd(plant.A)[1]))
    assert distance > 1e-2  # a lower bound of ||Ahat - T'AT|| for every unitary T, with infinite data
    # What does not depend on coordinates agrees.
    for k in range(9):
        power = np.linalg.matrix_power(A - F @ C, k)
        np.testing.assert_allclose(C @ power @ B, markov[0][k], atol=1e-8)
        np.testing.assert_allclose(C @ power @ F, markov[1][k], atol=1e-8)


def test_e21_more_than_unitary_transformations_leave_the_law_alone():
    plant = lqgap.LQG([[0.8, 0.3], [-0.2, 0.5]], [[0.0], [1.0]], [[1.0, 0.5]])
    unseen = np.array([0.5, -1.0])
    X = 0.4 * np.outer(unseen, unseen)
    np.testing.assert_allclose(plant.C @ X, 0, atol=1e-15)
    T = np.asarray(inverse_sqrt_psd(jnp.asarray(np.eye(2) + X - plant.A @ X @ plant.A.T)))
    other = lqgap.LQG(T @ plant.A @ np.linalg.inv(T), T @ plant.B, plant.C @ np.linalg.inv(T))
    assert norm(T.T @ T - np.eye(2)) > 0.05
    ours, theirs = lqgap.solve(plant), lqgap.solve(other)
    np.testing.assert_allclose(theirs.Sigma, T @ (ours.Sigma + X) @ T.T, rtol=1e-9)
    for left, right in zip(
        predictor_markov_parameters(ours, plant, length=6),
        predictor_markov_parameters(theirs, other, length=6),
        strict=True,
    ):
        np.testing.assert_allclose(left, right, atol=1e-10)
    np.testing.assert_allclose([theirs.S[0, 0], theirs.J], [ours.S[0, 0], ours.J], rtol=1e-9)
    # No orthogonal matrix maps one onto the other: the singular values of A differ.
    assert np.max(np.abs(np.linalg.svd(other.A)[1] - np.linalg.svd(plant.A)[1])) > 1e-2
