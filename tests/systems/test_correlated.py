import jax
import numpy as np
import pytest
import scipy.linalg as sla
from random_systems import random_definite, random_matrices, random_plant, random_record

import lqgap as lg
from lqgap.linalg import solve_riccati
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.systems import correlate_noise, filter_record, innovations_plant


@pytest.mark.parametrize("states", [1, 2, 4, 6])
def test_cross_terms_and_correlated_noise_agree_with_scipy_and_a_lyapunov_equation(states):
    """Gains by SciPy; the cost of the loop they make, by hand, in its own coordinates."""
    for seed in range(25):
        rng = np.random.default_rng(1000 * states + seed)
        inputs, outputs = rng.integers(1, 3, size=2)
        (A, B, C), _ = random_matrices(
            rng, states=states, inputs=inputs, outputs=outputs, radius=rng.uniform(0.3, 1.1)
        )
        cost, noise = random_definite(rng, states + inputs), random_definite(rng, states + outputs)
        Qx, N, R = cost[:states, :states], cost[:states, states:], cost[states:, states:]
        W, G, V = noise[:states, :states], noise[:states, states:], noise[states:, states:]
        P, Sigma = sla.solve_discrete_are(A, B, Qx, R, s=N), sla.solve_discrete_are(A.T, C.T, W, V, s=G)
        M, S = R + B.T @ P @ B, C @ Sigma @ C.T + V
        K = np.linalg.solve(M, B.T @ P @ A + N.T)
        L, guess = (np.linalg.solve(S, X.T).T for X in (Sigma @ C.T, G))  # of x and of w, by the innovation
        at_once = K @ L + np.linalg.solve(M, B.T @ P @ guess)
        of_state = np.hstack(
            [-at_once @ C, at_once @ C - K]
        )  # u by (x, xhat_{t|t-1}), besides measurement noise
        F = A @ L + guess
        loop = np.block([[A, np.zeros((states, states))], [F @ C, A - F @ C]]) + np.vstack([B, B]) @ of_state
        from_noise = np.block([[np.eye(states), -B @ at_once], [np.zeros((states, states)), F - B @ at_once]])
        X = sla.solve_discrete_lyapunov(loop, from_noise @ noise @ from_noise.T)
        weighed = np.vstack([np.eye(states, 2 * states), of_state])
        J = np.sum(cost * (weighed @ X @ weighed.T)) + np.trace(R @ at_once @ V @ at_once.T)

        zero = np.zeros((outputs, outputs))
        plant = correlate_noise(lg.LQG(A, B, C, Q=zero, R=R, Qx=Qx, N=N, W=W, V=V), G)
        optimum = lg.solve(plant)
        np.testing.assert_allclose(optimum.P[:states, :states], P, rtol=1e-9, atol=1e-9 * np.abs(P).max())
        np.testing.assert_allclose(optimum.K[:, :states], K, rtol=1e-9, atol=1e-9 * np.abs(K).max())
        np.testing.assert_allclose(
            optimum.Sigma[:states, :states], Sigma, rtol=1e-9, atol=1e-9 * np.abs(Sigma).max()
        )
        np.testing.assert_allclose(optimum.J, J, rtol=1e-9)
        policy = StationaryLQG(plant, filters="steady", optimum=optimum)
        np.testing.assert_allclose(lg.exact_average_cost(policy, plant), J, rtol=1e-9)
        np.testing.assert_allclose(solve_riccati(A, B, Q=Qx, R=R, N=N).K, K, rtol=1e-9, atol=1e-9)


def test_without_a_correlation_nothing_changes(seed):
    plant = random_plant(seed)
    same = correlate_noise(plant, np.zeros((3, 2)))
    y, u = random_record(seed, plant)
    np.testing.assert_allclose(lg.log_likelihood(same, y, u), lg.log_likelihood(plant, y, u), rtol=1e-10)
    np.testing.assert_allclose(lg.solve(same).J, lg.solve(plant).J, rtol=1e-10)
    ours, theirs = (lg.solve_finite(p, horizon=9).value for p in (same, plant))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_the_innovations_form_of_a_plant_has_its_likelihoods_and_costs(seed):
    plant = random_plant(seed)
    optimum = lg.solve(plant)
    weights = {"Q": plant.Q, "R": plant.R}
    form = innovations_plant(
        plant.A, plant.B, plant.C, F=optimum.F, S=optimum.S, S0=np.zeros((3, 3)), **weights
    )
    steady = lg.LQG(**(plant.matrices() | {"S0": optimum.Sigma}))
    y, u = random_record(seed, plant)
    np.testing.assert_allclose(lg.log_likelihood(form, y, u), lg.log_likelihood(steady, y, u), rtol=1e-9)
    np.testing.assert_allclose(lg.solve(form).J, optimum.J, rtol=1e-9)
    # Its own filter has nothing to learn: the state follows from what was observed.
    np.testing.assert_allclose(filter_record(form, y, u).belief.cov, 0, atol=1e-9)


def test_the_filter_of_correlated_noise_is_the_conditional_mean(seed):
    """Of (x_2, w_2) given y_0..y_2, from the joint covariance of everything."""
    rng = np.random.default_rng(seed)
    (A, B, C), weights = random_matrices(rng)
    noise = random_definite(rng, 5)
    W, G, V = noise[:3, :3], noise[:3, 3:], noise[3:, 3:]
    plant = correlate_noise(lg.LQG(A, B, C, **(weights | {"W": W, "V": V})), G)
    # Everything as a function of x_0 and (w_t, z_t), t = 0..2.
    sources = 3 + 3 * 5
    covariance = sla.block_diag(weights["S0"], noise, noise, noise)
    x, outputs = np.eye(3, sources), []
    for t in range(3):
        w, z = (np.eye(sources)[3 + 5 * t + start :][:size] for start, size in ((0, 3), (3, 2)))
        outputs.append(C @ x + z)
        wanted, x = np.vstack([x, w]), A @ x + w
    seen = np.vstack(outputs)
    gain = wanted @ covariance @ seen.T @ np.linalg.inv(seen @ covariance @ seen.T)
    y = rng.normal(size=(3, 2))
    x_hat, w_hat = np.split(gain @ y.ravel(), 2)
    belief = filter_record(plant, y, np.zeros((3, 2))).belief.mean[-1]
    np.testing.assert_allclose(belief[:3], x_hat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(G @ np.linalg.solve(V, belief[3:]), w_hat, rtol=1e-9, atol=1e-12)


def test_a_bank_learns_which_of_two_innovations_models_is_true():
    plants = [
        innovations_plant([[pole]], [[1.0]], [[1.0]], F=[[0.5]], S=[[1.0]], S0=[[0.0]])
        for pole in (-0.9, 0.9)
    ]
    bank = ModelBank(lg.stack(plants))
    members = lg.simulators.Finite(plants)
    gap = lg.gap(bank, members, horizon=200, key=jax.random.key(0), num_rollouts=200)
    assert np.all(gap.per_step[:, 100:].mean(axis=1) < 0.1 * gap.per_step[:, :10].mean(axis=1))


def test_impossible_correlations_are_refused():
    plant = lg.LQG([[0.5]], [[1.0]], [[1.0]])
    with pytest.raises(lg.InvalidSystemError, match="G is too large"):
        correlate_noise(plant, [[1.1]])
    with pytest.raises(lg.InvalidSystemError, match="G has shape"):
        correlate_noise(plant, [[0.1, 0.1]])
    with pytest.raises(lg.InvalidSystemError, match="V must be positive definite"):
        correlate_noise(correlate_noise(plant, [[0.5]]), [[0.1], [0.1]])
    with pytest.raises(lg.InvalidArgumentError, match="W is given"):
        innovations_plant([[0.5]], [[1.0]], [[1.0]], F=[[0.1]], S=[[1.0]], W=[[1.0]])
    with pytest.raises(lg.InvalidSystemError, match="F has shape"):
        innovations_plant([[0.5]], [[1.0]], [[1.0]], F=[[0.1], [0.2]], S=[[1.0]])
