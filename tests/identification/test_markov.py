import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant
from records import record

import lqgap
from lqgap.identification.markov import estimate_markov, exact_markov

PLANT = random_plant(3, radius=0.8)


def windows(y, u, length):
    """phi_t by its definition, one row for each t >= length."""
    return np.array(
        [
            np.concatenate(
                [*(y[t - k] for k in range(1, length + 1)), *(u[t - k] for k in range(1, length + 1))]
            )
            for t in range(length, len(y))
        ]
    )


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_the_estimate_solves_the_normal_equations(ridge):
    y, u = record(PLANT, steps=200, seed=0)
    estimate = estimate_markov(y, u, length=4, ridge=ridge)
    phi, M = windows(y, u, 4), np.asarray(estimate.parameters.matrix())
    np.testing.assert_allclose((y[4:] - phi @ M.T).T @ phi, ridge * M, atol=1e-8)
    np.testing.assert_allclose(estimate.precision(), phi.T @ phi + ridge * np.eye(16), rtol=1e-12, atol=1e-12)


def test_residuals_are_those_of_the_record():
    y, u = record(PLANT, steps=200, seed=0)
    estimate = estimate_markov(y, u, length=4)
    M = np.random.default_rng(1).normal(size=(2, 16))
    residual = y[4:] - windows(y, u, 4) @ M.T
    expected = residual.T @ residual / len(residual)
    np.testing.assert_allclose(estimate.residual_covariance(jnp.asarray(M)), expected, rtol=1e-10)


def test_windows_with_a_lost_observation_are_left_out():
    y, u = record(PLANT, steps=100, seed=1)
    y[37, 0] = np.nan
    estimate = estimate_markov(y, u, length=3, ridge=0.5)
    phi, seen = windows(y, u, 3), np.delete(np.arange(97), [34, 35, 36, 37])
    assert int(estimate.moments.count) == len(seen)  # the lost observation is in four windows
    expected = phi[seen].T @ phi[seen] + 0.5 * np.eye(12)
    np.testing.assert_allclose(estimate.precision(), expected, rtol=1e-12, atol=1e-12)


def test_exact_parameters_are_those_of_the_golden_filter(golden, golden_plant):
    exact = exact_markov(lqgap.solve(golden_plant), golden_plant, length=3)
    A, B, C, F = (np.array(golden[name]) for name in "ABCF")
    Abar = A - F @ C
    expected = np.concatenate(
        [
            *(C @ np.linalg.matrix_power(Abar, k) @ F for k in range(3)),
            *(C @ np.linalg.matrix_power(Abar, k) @ B for k in range(3)),
        ],
        axis=1,
    )
    np.testing.assert_allclose(exact.matrix(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(exact.S, golden["S"], rtol=1e-9)


def test_errors_are_within_what_the_precision_says(seed):
    """(M - M_true) precision^1/2 S^-1/2 has unit normal entries: their mean square over 2 * 40 of them is 1."""
    y, u = record(PLANT, steps=20_000, seed=seed)
    estimate = estimate_markov(y, u, length=10)
    exact = exact_markov(lqgap.solve(PLANT), PLANT, length=10)
    error = np.asarray(estimate.parameters.matrix() - exact.matrix())
    precision, S = np.asarray(estimate.precision()), np.asarray(exact.S)
    mean_square = np.trace(np.linalg.solve(S, error @ precision @ error.T)) / error.size
    assert abs(mean_square - 1) < 4 * np.sqrt(2 / error.size)  # chi square of that many degrees of freedom
    # The sample covariance of 20,000 innovations has relative errors of sqrt(2 / 20,000).
    np.testing.assert_allclose(np.linalg.eigvals(np.linalg.solve(S, estimate.parameters.S)), 1, atol=0.06)


def test_the_chosen_length_is_twice_that_of_akaikes_criterion():
    y, u = record(PLANT, steps=400, seed=0)
    estimate = estimate_markov(y, u)
    longest = min((len(y) - 3) // 5 // 2, 50)
    criteria = []
    for length in range(1, longest + 1):
        phi, target = windows(y, u, longest), y[longest:]
        phi = np.concatenate([phi[:, : 2 * length], phi[:, 2 * longest : 2 * (longest + length)]], axis=1)
        residual = target - phi @ np.linalg.lstsq(phi, target, rcond=None)[0]
        S = residual.T @ residual / len(target)
        criteria.append(len(target) * np.linalg.slogdet(S)[1] + 2 * 2 * 4 * length)
    assert estimate.length == 2 * (int(np.argmin(criteria)) + 1)
    assert int(estimate.moments.count) == 400 - longest  # the same windows for all lengths


def test_units_do_not_matter():
    y, u = record(PLANT, steps=300, seed=2)
    base, other = estimate_markov(y, u, length=4), estimate_markov(1e6 * y, 1e-7 * u, length=4)
    np.testing.assert_allclose(other.parameters.of_outputs, base.parameters.of_outputs, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        other.parameters.of_inputs, 1e13 * base.parameters.of_inputs, rtol=1e-6, atol=1e5
    )


def test_older_values_of_a_smooth_input_are_left_out_where_lags_are_chosen():
    """A slow chirp that is sampled fast, as in records of machines: few of its values tell the next."""
    plant, t = random_plant(2, radius=0.8, inputs=1, outputs=1), np.arange(2000)
    u = np.cos(0.1 * t * (1 - t / 4000))[:, None]
    y, _ = record(plant, steps=2000, seed=0, sigma_u=0.0)
    x = np.zeros(3)
    for step, value in enumerate(u):
        y[step] += plant.C @ x
        x = plant.A @ x + plant.B @ value
    eigenvalues = [np.linalg.eigvalsh(np.corrcoef(windows(y, u, k), rowvar=False))[0] for k in range(1, 20)]
    excited = int(np.argmax(np.array(eigenvalues) < 1e-10))  # means are near zero
    assert 2 <= excited < 10
    estimate = estimate_markov(y, u)
    assert 2 <= estimate.length <= excited
    with pytest.raises(lqgap.InvalidArgumentError, match=f"of {excited + 1} lags, but of {excited} at most"):
        estimate_markov(y, u, length=excited + 1)
    exact = exact_markov(lqgap.solve(plant), plant, length=1)
    np.testing.assert_allclose(estimate.parameters.of_outputs[0], exact.of_outputs[0], atol=0.1)


GOOD = record(PLANT, steps=60, seed=0)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda y, u: {"y": y[:4], "u": u[:4]}, "too short"),
        (lambda y, u: {"y": y, "u": u, "length": 40}, "too short"),
        (lambda y, u: {"y": y, "u": u, "length": 60, "ridge": 1.0}, "too short"),
        (lambda y, u: {"y": y, "u": u, "length": 0}, "length is 0"),
        (lambda y, u: {"y": y, "u": u, "ridge": -1.0}, "ridge is -1.0"),
        (lambda y, u: {"y": y, "u": u, "ridge": np.nan}, "ridge is nan"),
        (lambda y, u: {"y": y, "u": np.where(u > 2, np.nan, u)}, "u has entries that are NaN"),
        (lambda y, u: {"y": np.full_like(y, np.nan), "u": u}, "only 0 windows"),
        (lambda y, u: {"y": y, "u": np.zeros_like(u)}, "does not excite"),
        (lambda y, u: {"y": y, "u": -0.3 * y}, "does not excite"),
        (lambda y, u: {"y": y[:, 0], "u": u}, "y has shape"),
        (lambda y, u: {"y": y[:-1], "u": u}, "y has 59 rows and u has 60"),
        (lambda y, u: {"y": y, "u": u[:, :0]}, "0 inputs"),
        (lambda y, u: {"y": "record", "u": u}, "y "),
    ],
)
def test_bad_records_are_named(arguments, message):
    with pytest.raises(lqgap.LqgapError, match=message):
        estimate_markov(**arguments(*GOOD))


def test_a_static_input_becomes_legal_with_a_ridge():
    y, _ = GOOD
    estimate = estimate_markov(y, np.zeros((60, 2)), length=2, ridge=1.0)
    np.testing.assert_allclose(estimate.parameters.of_inputs, 0, atol=1e-12)
