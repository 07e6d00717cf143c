"""Errata of the paper about its proofs and lower bound: what is printed fails, what replaces it holds."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from random_systems import random_plant
from ten_models import ten_models

import lqgap
from lqgap.batches import take
from lqgap.policies import FiniteHorizonLQG
from lqgap.simulators import Finite, check_assumptions
from lqgap.systems import (
    arx_matrix,
    bias_matrix,
    filter_matrix,
    predictor_markov_parameters,
    steady_beliefs,
    value_target,
)
from lqgap.theory import num_features
from lqgap.theory.constants.covering import sensitivities
from lqgap.theory.constants.eluder import greedy_eluder_sequence
from lqgap.theory.constants.norms import actual_norms, uniform_norms
from lqgap.theory.constants.transient import transients


def norm(X):
    return float(np.linalg.norm(np.asarray(X), 2))


def test_e22_the_error_of_a_wrong_model_obeys_the_corrected_recursion(seed):
    """Filters of the true and of a wrong model along one run: printed G_3 is n x p and cannot multiply the error."""
    true, wrong = random_plant(seed), random_plant(seed + 50)
    o, w = lqgap.solve(true), lqgap.solve(wrong)
    Lam = wrong.A - true.A - (wrong.B - true.B) @ w.K
    keep, miss = jnp.eye(3) - w.L @ wrong.C, wrong.C - true.C
    G0 = (true.A + Lam) @ keep
    G1 = (true.A + Lam) @ w.L @ miss - Lam
    G2 = true.A - true.B @ w.K + true.B @ w.K @ w.L @ miss
    G3 = true.B @ w.K @ keep
    printed_G3 = (true.A - true.B @ w.K) @ o.L + true.B @ w.K @ (o.L - w.L)
    assert printed_G3.shape == (3, 2)
    rng = np.random.default_rng(seed)
    x_true, x_wrong = jnp.asarray(rng.normal(size=3)), jnp.asarray(rng.normal(size=3))  # predictions
    for _ in range(4):
        error, e = x_true - x_wrong, rng.normal(size=2)
        y = true.C @ x_true + e
        acted_on = x_wrong + w.L @ (y - wrong.C @ x_wrong)
        u = -w.K @ acted_on
        after_true = true.A @ (x_true + o.L @ e) + true.B @ u
        after_wrong = wrong.A @ acted_on + wrong.B @ u
        drive = (true.A @ o.L - (true.A + Lam) @ w.L) @ e
        np.testing.assert_allclose(after_true - after_wrong, G0 @ error + G1 @ x_true + drive, atol=1e-8)
        # What is printed as G_3 is the gain of the innovation.
        np.testing.assert_allclose(after_true, G2 @ x_true + G3 @ error + printed_G3 @ e, atol=1e-8)
        x_true, x_wrong = after_true, after_wrong


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
def test_e23_the_sum_is_bounded_without_a_factor_that_vanishes(gamma):
    s = np.arange(1, 400)
    sums = np.cumsum((s - 1) * (1 - gamma) ** np.maximum(s - 2.0, 0))
    printed = s * (1 - gamma) ** (s - 1.0) / gamma**2
    assert np.any(sums > printed)
    assert np.all(sums <= 1 / gamma**2 * (1 + 1e-12))


def test_e24_the_first_observation_enters_the_difference_of_beliefs_with_a_minus(seed):
    one, other, rng, t = random_plant(seed), random_plant(seed + 50), np.random.default_rng(seed), 3
    y, u = rng.normal(size=(t + 1, 2)), rng.normal(size=(t + 1, 2))
    solved = [lqgap.solve(plant) for plant in (one, other)]
    beliefs = [steady_beliefs(o, p, y, u)[t] for o, p in zip(solved, (one, other), strict=True)]
    later, first = [], []
    for o, plant in zip(solved, (one, other), strict=True):
        calA, keep = filter_matrix(o, plant), jnp.eye(3) - o.L @ plant.C
        power = [jnp.linalg.matrix_power(calA, k) for k in range(t + 1)]
        later.append(
            sum(power[s - 1] @ (keep @ plant.B @ u[t - s] + o.L @ y[t - s + 1]) for s in range(1, t + 1))
        )
        first.append(power[t] @ o.L @ y[0])
    difference = beliefs[0] - beliefs[1]
    np.testing.assert_allclose(difference, later[0] - later[1] + first[0] - first[1], atol=1e-9)
    assert norm(difference - (later[0] - later[1] + first[0] + first[1])) > 1e-5


def test_e25_the_printed_warm_up_lets_the_loop_expand():
    """Models that differ by the allowed 2 (C_w / T)^1/2 in every matrix, in the worst directions."""
    plant = lqgap.LQG([[0.8]], [[1.0]], [[1.0]])
    o = lqgap.solve(plant)
    K, L = float(o.K[0, 0]), float(o.L[0, 0])
    slack, N_S = 1 - abs(0.8 - K), 1.0

    def change_of_loop(T, C_w=1.0):
        eps = 2 * math.sqrt(C_w / T)
        A, B, C = 0.8 + eps, 1.0 - eps, 1.0 - eps  # of the true plant, the given one being acted on
        G2 = A - B * K + B * K * L * (1.0 - C)
        return abs(G2 - (0.8 - K))

    printed = 36 * (N_S * K * L) ** 2 / slack**2
    corrected = 16 * (1 + K + N_S * K * L) ** 2 / slack**2
    assert change_of_loop(printed) > slack / 2
    assert change_of_loop(corrected) <= slack / 2


def test_e26_the_reduction_needs_the_worst_regret_over_the_class():
    """Plants of gain b and -b: at the first step no input suits both, so the worst gap is at least this much.

    The optimal policy of either has regret -D_H on it, so "regret + D_h" of the true plant alone would be zero.
    """
    horizon = 200
    plants = [lqgap.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -1.0)]
    finite = lqgap.solve_finite(plants[0], horizon=horizon)
    belief = finite.L[0] @ finite.S[0] @ finite.L[0].T
    least_worst_gap = float(jnp.trace(finite.K[0].T @ finite.M[0] @ finite.K[0] @ belief))
    D_h = float(transients(check_assumptions(Finite(plants)), horizon=horizon).limit[0])
    cost = lqgap.exact_cost(FiniteHorizonLQG(plants[0], horizon), plants[0], horizon=horizon)
    regret_on_the_truth = float(cost - (horizon + 1) * lqgap.solve(plants[0]).J)
    assert regret_on_the_truth + D_h < 1e-9
    assert least_worst_gap > 0.1
    other = lqgap.exact_cost(FiniteHorizonLQG(plants[0], horizon), plants[1], horizon=horizon)
    worst_regret = float(other - (horizon + 1) * lqgap.solve(plants[1]).J)
    assert worst_regret + D_h > least_worst_gap


SENSITIVE = {
    "filter": ([[-0.55, -0.35], [0.23, -1.15]], [[-0.55, 0.36]]),
    "innovation": ([[-0.09, -0.15], [-2.15, 0.39]], [[-0.58, -2.68]]),
}


@pytest.mark.parametrize("which", sorted(SENSITIVE))
def test_e27_filters_and_innovations_change_faster_than_printed(which):
    """With the norms of the plant itself: the printed constants forget that L and Sigma change too."""
    A, C = (np.array(X) for X in SENSITIVE[which])
    plant = lqgap.LQG(A, [[0.1], [0.1]], C)
    report = check_assumptions(Finite([plant]))
    norms = actual_norms(uniform_norms(report), report)
    o, eps, rng = lqgap.solve(plant), 1e-7, np.random.default_rng(0)
    of_filter = 1 + norms.N_S**2 + 2 * norms.N_L * norms.N_S
    of_innovation = 2 * norms.N_S * norms.N_Sigma + norms.N_S**2

    @jax.jit
    @jax.vmap
    def changes(dA, dC):
        other = lqgap.LQG(A + eps * dA, plant.B, C + eps * dC)
        solved = lqgap.solve(other)
        return filter_matrix(solved, other) - filter_matrix(o, plant), solved.S - o.S

    dA, dC = rng.normal(size=(400, 2, 2)), rng.normal(size=(400, 1, 2))
    dA[::2] = np.einsum("ki,kj->kij", *rng.normal(size=(2, 200, 2)))
    dA, dC = (X / np.linalg.norm(X, 2, axis=(1, 2), keepdims=True) for X in (dA, dC))
    fastest = [np.max(np.linalg.norm(X, 2, axis=(1, 2))) / eps for X in changes(dA, dC)]
    state = {"Xbar_1": 1.0, "Xbar_2": 1.0, "Ubar": 1.0, "Ybar": 1.0}
    corrected = sensitivities(norms, state)
    assert fastest[0] <= corrected["C_A"]
    assert fastest[1] <= corrected["C_S"]
    assert {"filter": fastest[0] > of_filter, "innovation": fastest[1] > of_innovation}[which]


def test_e27_the_difference_of_targets_has_a_cross_term(seed):
    acted_on, one, other = (random_plant(seed + shift) for shift in (0, 30, 60))
    o, rng = lqgap.solve(acted_on), np.random.default_rng(seed)
    target = lqgap.systems.value_target(o, acted_on, rng.normal(size=3), rng.normal(size=2))
    window = rng.normal(size=3 * 4 + 2)
    (m, S), (m_bar, S_bar) = (
        (arx_matrix(solved, plant, length=3) @ window, solved.S)
        for plant, solved in ((plant, lqgap.solve(plant)) for plant in (one, other))
    )
    difference = target.mean(m, S) - target.mean(m_bar, S_bar)
    zeta, L, Q = bias_matrix(o, acted_on), o.L, acted_on.Q
    diff_1 = m @ Q @ m - m_bar @ Q @ m_bar
    diff_2 = m @ L.T @ zeta @ L @ m - m_bar @ L.T @ zeta @ L @ m_bar
    noise = jnp.trace(target.Phi @ (S - S_bar))
    cross = target.linear @ (m - m_bar)
    np.testing.assert_allclose(difference, noise + diff_1 + diff_2 + cross, rtol=1e-9, atol=1e-9)
    assert abs(difference - (noise + diff_1 + diff_2)) > 1e-3


def test_e27_powers_differ_by_powers_of_the_same_order():
    """At a plant itself nothing differs, but the printed s - 1 and s - 2 do; and (1 - gamma)^{s-1} is too small."""
    plant = ten_models()[4]
    calA = filter_matrix(lqgap.solve(plant), plant)
    assert norm(calA @ calA - calA) > 0.1  # printed: at most a multiple of eps = 0
    # A = 0 has gamma = 1: the printed bound of ||calA - calA'|| (s = 2) vanishes, the change does not.
    eps = 1e-3
    moved = lqgap.LQG([[eps]], [[1.0]], [[1.0]])
    change = norm(filter_matrix(lqgap.solve(moved), moved))
    assert 0 < change <= (1 + 1 + 2 * 0.5) * eps


def test_e28_the_covariance_of_observations_depends_on_the_policy_that_of_residuals_does_not():
    plant = lqgap.LQG([[0.9]], [[1.0]], [[1.0]])
    o = lqgap.solve(plant)
    noise = 1.0 / (1 - 0.9**2) + 1  # Cov(y) of no input
    random = 2.0 / (1 - 0.9**2) + 1  # Cov(y) of unit white inputs
    assert abs(noise - 1 - o.Sigma[0, 0]) > 1
    assert abs(random - noise) > 1
    np.testing.assert_allclose(o.S - plant.V, o.Sigma, rtol=1e-12)


HORIZONS = (100, 400, 1600)


def test_e29_a_class_of_radius_h_to_minus_a_half_cannot_force_a_growing_gap():
    """The nominal optimum's own gap on models moved along the packing (A + DK, B + D), exactly."""
    plant = lqgap.LQG([[0.9]], [[0.6]], [[1.0]])
    K = lqgap.solve(plant).K

    def worst_gap(horizon, radius):
        policy = FiniteHorizonLQG(plant, horizon)
        moved = [lqgap.LQG(plant.A + d * K, plant.B + d, plant.C) for d in (radius, -radius)]
        return max(float(lqgap.exact_gap(policy, other, horizon=horizon)) for other in moved)

    printed = np.array([worst_gap(H, 0.3 * H**-0.5) for H in HORIZONS])
    corrected = np.array([worst_gap(H, 0.3 * H**-0.25) for H in HORIZONS])
    assert max(printed) < 1.3 * min(printed)
    np.testing.assert_allclose(corrected[1:] / corrected[:-1], 2.0, rtol=0.2)  # sqrt(H) doubles


def passive_information(noise, shift):
    """How much a step tells the packing apart under the nominal controller: E nu^2 / (2 S), by a Lyapunov equation.

    States: the plant, the prediction by the nominal model, the prediction by the moved one.
    """
    nominal = lqgap.LQG([[0.9]], [[0.6]], [[1.0]], V=[[noise]])
    K = float(lqgap.solve(nominal).K[0, 0])
    moved = lqgap.LQG([[0.9 + shift * K]], [[0.6 + shift]], [[1.0]], V=[[noise]])
    (a, b, L, _), (a1, b1, L1, S1) = (
        (float(p.A[0, 0]), float(p.B[0, 0]), float(o.L[0, 0]), float(o.S[0, 0]))
        for p, o in ((p, lqgap.solve(p)) for p in (nominal, moved))
    )
    from_y, from_own = -K * L, -K * (1 - L)  # u = from_y y + from_own xhat
    loop = np.array([
        [a + b * from_y, b * from_own, 0],
        [a * L + b * from_y, a * (1 - L) + b * from_own, 0],
        [a1 * L1 + b1 * from_y, b1 * from_own, a1 * (1 - L1)],
    ])  # fmt: skip
    z = np.array([b * from_y, a * L + b * from_y, a1 * L1 + b1 * from_y])
    covariance = scipy.linalg.solve_discrete_lyapunov(loop, np.diag([1.0, 0, 0]) + noise * np.outer(z, z))
    nu = np.array([0, -1.0, 1.0])
    return 0.5 * nu @ covariance @ nu / S1


def test_e30_with_noisy_observations_the_packing_tells_itself_apart():
    shift = 0.01
    noisy, clean = passive_information(1.0, shift), passive_information(1e-8, shift)
    assert noisy > 1e-3 * shift**2
    assert clean < 1e-3 * noisy


GROWING = (25, 100, 400, 1600)


def log_slope(counts, horizons=GROWING):
    return np.polyfit(np.log(horizons), np.log(counts), 1)[0]


def dimensions(values, *, epsilon):
    """The longest Eluder sequence found, and how many dimensions come within epsilon of every value."""
    singular = np.linalg.svd(values - np.mean(values, axis=0), compute_uv=False)
    return len(greedy_eluder_sequence(values, epsilon=epsilon)), int(np.sum(singular > epsilon))


@functools.cache
def scalar_class():
    """48 members, their Markov parameters for the longest history, and what the slowest filter keeps of a step."""
    parameters = np.random.default_rng(0).uniform((0.5, 0.4, 0.2), (0.95, 1.6, 1.0), size=(48, 3))
    members = Finite([lqgap.LQG([[a]], [[b]], [[1.0]], W=[[w]]) for a, b, w in parameters])
    solved = members.optima(), members.systems
    markov = jax.vmap(lambda o, p: predictor_markov_parameters(o, p, length=max(GROWING) + 1))(*solved)
    kept = float(jnp.max(jnp.abs(jax.vmap(filter_matrix)(*solved))))
    return solved, [np.asarray(each)[:, :, 0, 0] for each in markov], kept


def test_e31_without_clipping_features_grow_like_h_squared_and_the_dimension_does_not(seed):
    """f' of a history of H steps and f of its last few, where filters have kept (4 H)^-2, on arbitrary samples."""
    (optima, systems), (of_inputs, of_outputs), kept = scalar_class()
    rng, num_samples = np.random.default_rng(seed), 192
    acted_on = take((optima, systems), rng.integers(48, size=num_samples))
    xhat, u = rng.normal(size=(2, num_samples, 1))
    outputs = rng.normal(size=(num_samples, max(GROWING)))  # the latest first
    inputs = np.concatenate([u, rng.normal(size=outputs.shape)], axis=1)
    targets = jax.vmap(value_target)(*acted_on, xhat, u)
    of_samples = jax.vmap(lambda target, m, S: target.mean(m, S), in_axes=(0, 0, None))

    def values(length):
        means = of_inputs[:, : length + 1] @ inputs[:, : length + 1].T
        means = means + of_outputs[:, :length] @ outputs[:, :length].T
        return np.asarray(jax.vmap(of_samples, in_axes=(None, 0, 0))(targets, means[..., None], optima.S))

    found = []
    for horizon in GROWING:
        length = math.ceil(2 * math.log(4 * horizon) / -math.log(kept))
        full, clipped = values(horizon), values(length)
        assert 0 < np.max(np.abs(full - clipped)) < 1 / horizon
        found.append([dimensions(each, epsilon=1 / horizon) for each in (full, clipped)])
    found = np.array(found)  # horizon; full, clipped; sequence, rank
    features = [num_features(num_inputs=1, num_outputs=1, length=horizon) for horizon in GROWING]
    assert 1.9 < log_slope(features) < 2.1
    assert all(log_slope(counts) < 0.2 for counts in found[:, 0].T)
    assert np.all(np.abs(found[:, 0] - found[:, 1]) <= 3)
    assert np.all(found[:, :, 1] < 30)  # far from 47, where 48 members end


def test_e31_of_functions_that_forget_nothing_the_dimension_grows_with_h(seed):
    """The same measures on H functions, each of which is one of the last H observations, white noise."""
    horizons, y = (6, 12, 24), np.random.default_rng(seed).normal(size=423)
    windows = [np.lib.stride_tricks.sliding_window_view(y, 400)[:horizon] for horizon in horizons]
    found = [dimensions(each, epsilon=1 / h) for h, each in zip(horizons, windows, strict=True)]
    assert [rank for _, rank in found] == [5, 11, 23]  # and their mean
    assert log_slope([sequence for sequence, _ in found], horizons) > 0.4
