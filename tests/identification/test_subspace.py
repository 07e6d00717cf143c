import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant
from records import record, records

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.identification import realize
from lqgap.identification.markov import MarkovParameters, estimate_markov, exact_markov
from lqgap.systems import delay_input


@functools.cache
def flight():
    return lqgap.plants.boeing_747(measured="speed_and_attitude").nominal()


def exact_of(plant, *, length):
    return exact_markov(lqgap.solve(plant), plant, length=length)


def relative_error(estimate, exact):
    difference = estimate.markov(length=exact.length).matrix() - exact.matrix()
    return float(jnp.linalg.norm(difference) / jnp.linalg.norm(exact.matrix()))


def test_the_plain_realisation_is_exact_on_golden_plants(golden, golden_plant):
    n = len(golden["A"])
    found = realize(exact_of(golden_plant, length=2 * n + 2))
    assert found.order == n
    # Parameters that were not given are told, too.
    longer = exact_of(golden_plant, length=4 * n + 6)
    np.testing.assert_allclose(found.markov(length=4 * n + 6).matrix(), longer.matrix(), atol=1e-9)
    A, F, C = (np.array(golden[name]) for name in "AFC")
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(found.A)), np.sort_complex(np.linalg.eigvals(A)), atol=1e-7
    )
    np.testing.assert_allclose(found.C @ found.F, C @ F, atol=1e-9)
    Q, R = np.array(golden["Q"]), np.array(golden["R"])
    cost = lqgap.exact_average_cost(found.controller(Q=Q, R=R), golden_plant)
    np.testing.assert_allclose(cost, golden["J_star"], rtol=1e-9)


def test_a_plant_with_a_delay_is_realised_exactly_without_its_gain():
    plant = delay_input(random_plant(1, inputs=1, radius=0.7), 2)
    exact = exact_of(plant, length=14)
    found = realize(exact)
    assert found.order == 5
    assert relative_error(found, exact) < 1e-10
    cost = lqgap.exact_average_cost(found.controller(Q=plant.Q, R=plant.R), plant)
    np.testing.assert_allclose(cost, lqgap.solve(plant).J, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["plain", "canonical"])
def test_the_error_falls_like_the_root_of_the_length_of_the_record(weighting):
    """The logarithm of an error varies by about 0.3, its mean over 16 records by 0.08.

    From a thousand steps to 32 times as many, the slope of the means then varies by 0.08 sqrt(2) / log 32 = 0.03.
    """
    exact, lengths = exact_of(flight(), length=12), [1000, 32_000]
    logs = np.zeros(2)
    for y, u in records(flight(), steps=32_000, seed=0, count=16):
        for index, steps in enumerate(lengths):
            estimate = estimate_markov(y[:steps], u[:steps], length=12)
            logs[index] += np.log(relative_error(realize(estimate, order=4, weighting=weighting), exact)) / 16
    slope = (logs[1] - logs[0]) / np.log(32)
    assert abs(slope + 0.5) < 0.1


@pytest.mark.slow
def test_weighing_by_the_data_beats_plain_factoring():
    """On the gain's parameters of an airliner; the mean over 8 records, with more lags than needed."""
    exact = exact_of(flight(), length=24)
    squares = {"plain": 0.0, "canonical": 0.0}
    for y, u in records(flight(), steps=2000, seed=0, count=8):
        estimate = estimate_markov(y, u, length=24)
        for weighting in squares:
            found = realize(estimate, order=4, weighting=weighting).markov(length=24)
            squares[weighting] += float(jnp.sum((found.of_outputs - exact.of_outputs) ** 2))
    assert squares["canonical"] < squares["plain"] / 2


def test_the_order_is_found(seed):
    plant = random_plant(5, radius=0.9)
    assert realize(estimate_markov(*record(plant, steps=5000, seed=seed))).order == 3


def test_the_canonical_realisation_is_the_regression_of_signals_that_it_says_it_is():
    """States built from windows, signal by signal, and `lstsq`, against sums of moments."""
    y, u = record(flight(), steps=500, seed=0)
    length, order, p = 5, 4, 2
    estimate = estimate_markov(y, u, length=length)
    phi = np.concatenate(
        [s[length - k : len(y) - k + 1] for s in (y, u) for k in range(1, length + 1)], axis=1
    )
    G = phi[:-1].T @ phi[:-1]
    M = np.asarray(estimate.parameters.matrix())
    root = np.linalg.cholesky(np.linalg.inv(np.asarray(estimate.parameters.S))).T  # any root of S^-1
    hankel = np.zeros((length * p, phi.shape[1]))
    for i in range(length):  # row i predicts y_{t+i}: lags move up by i, the oldest fall out
        for block in range(2):
            start = block * length * p
            moved = M[:, start + i * p : start + length * p]
            hankel[i * p : (i + 1) * p, start : start + moved.shape[1]] = root @ moved
    values, vectors = np.linalg.eigh(G)
    G_root = vectors * np.sqrt(values) @ vectors.T
    _, s, Vt = np.linalg.svd(hankel @ G_root)
    states = phi @ np.linalg.solve(G_root, Vt[:order].T * np.sqrt(s[:order]))
    C = np.linalg.lstsq(states[:-1], y[length:], rcond=None)[0].T
    e = y[length:] - states[:-1] @ C.T
    regressors = np.concatenate([states[:-1], u[length:], e], axis=1)
    A, B, F = np.split(np.linalg.lstsq(regressors, states[1:], rcond=None)[0].T, [order, order + 2], axis=1)
    found = realize(estimate, order=order)
    expected = [C @ np.linalg.matrix_power(A, k) @ np.concatenate([B, F], axis=1) for k in range(6)]
    reached = [
        found.C @ np.linalg.matrix_power(found.A, k) @ np.concatenate([found.B, found.F], axis=1)
        for k in range(6)
    ]
    np.testing.assert_allclose(reached, expected, atol=1e-8)
    np.testing.assert_allclose(found.S, e.T @ e / len(e), rtol=1e-9)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    plant = random_plant(0, states=2, inputs=1, outputs=1)
    exact = exact_of(plant, length=8)
    zero = MarkovParameters(jnp.zeros((4, 1, 1)), jnp.zeros((4, 1, 1)), jnp.eye(1))
    cases = [
        (exact, {"order": 3}, "order is 3, but the Hankel matrix of 8 lags has rank 2"),
        (exact, {"order": 0}, "order is 0"),
        (exact, {"weighting": "canonical"}, "carry no moments"),
        (exact, {"weighting": "heavy"}, "weighting is 'heavy'"),
        (exact_of(plant, length=1), {}, "one lag only"),
        (zero, {}, "all Markov parameters are zero"),
        (eqx.tree_at(lambda e: e.of_inputs, exact, exact.of_inputs * jnp.nan), {}, "NaN"),
        (np.eye(2), {}, "markov is a ndarray"),
    ]
    for markov, options, message in cases:
        with pytest.raises(InvalidArgumentError, match=message):
            realize(markov, **options)
    short = estimate_markov(*record(plant, steps=100, seed=0), length=2)
    with pytest.raises(InvalidArgumentError, match="more lags"):
        realize(short, order=3, weighting="canonical")
