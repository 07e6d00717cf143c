import jax.numpy as jnp
import numpy as np
import pytest
from records import record, records
from springs import FAMILY, grid

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.identification.markov import MarkovEstimate, Moments, exact_markov
from lqgap.identification.selection import coordinate_distances, select_models, truncation_length
from lqgap.simulators import Finite, likelihood_set

TRUTH = 4


def holds(chosen, index):
    return any(np.allclose(row, grid(3).parameters[index]) for row in np.asarray(chosen.parameters))


def test_the_likelihood_set_is_that_of_the_simulators():
    y, u = record(grid(3)[TRUTH], steps=200, seed=0, settle=0)
    chosen = select_models(grid(3), y, u, delta=0.1)
    expected = likelihood_set(grid(3), y, u, delta=0.1)
    np.testing.assert_array_equal(chosen.parameters, expected.parameters)
    assert holds(chosen, TRUTH)


def test_the_ellipsoid_is_its_defining_inequality():
    """Written out member by member, with predictions of the steady filter and sums over the record."""
    y, u = record(grid(3)[TRUTH], steps=3000, seed=0)
    length, ridge, delta = 4, 2.0, 0.1
    phi = np.array(
        [
            np.concatenate([y[t - length : t][::-1].ravel(), u[t - length : t][::-1].ravel()])
            for t in range(length, len(y))
        ]
    )
    G = phi.T @ phi + ridge * np.eye(8)
    estimate = np.linalg.solve(G, phi.T @ y[length:]).T
    expected = []
    for plant in grid(3):
        optimum = lqgap.solve(plant)
        A, B, C, F = (np.asarray(X) for X in (plant.A, plant.B, plant.C, optimum.F))
        Abar, xhat, cut = A - F @ C, np.zeros(2), 0.0
        for t in range(len(y) - length):
            cut += ((C @ np.linalg.matrix_power(Abar, length) @ xhat)[0]) ** 2
            xhat = Abar @ xhat + B @ u[t] + F @ y[t]
        exact = np.asarray(exact_markov(optimum, plant, length=length).matrix())
        error = (estimate - exact)[0]
        radius = np.sqrt(
            optimum.S[0, 0] * (2 * np.log(1 / delta) + np.linalg.slogdet(G)[1] - 8 * np.log(ridge))
        )
        expected.append(
            np.sqrt(error @ G @ error) <= radius + np.sqrt(ridge) * np.linalg.norm(exact) + np.sqrt(cut)
        )
    chosen = select_models(grid(3), y, u, method="ellipsoid", delta=delta, length=length, ridge=ridge)
    np.testing.assert_array_equal(chosen.parameters, np.asarray(grid(3).parameters)[np.array(expected)])
    assert 0 < len(chosen) < len(grid(3))


@pytest.mark.slow
def test_the_ellipsoid_keeps_the_truth():
    """It is lost in at most delta of all runs: 60 runs, three standard errors."""
    delta, runs = 0.2, 60
    lost = sum(
        not holds(select_models(grid(3), y, u, method="ellipsoid", delta=delta, length=10), TRUTH)
        for y, u in records(grid(3)[TRUTH], steps=300, seed=0, count=runs)
    )
    assert lost / runs <= delta + 3 * np.sqrt(delta * (1 - delta) / runs)


def endless(plant, *, length):
    """The estimate that an endless record would give, up to the moments that a plain realisation ignores."""
    parameters = exact_markov(lqgap.solve(plant), plant, length=length)
    return MarkovEstimate(parameters, Moments(jnp.eye((length + 1) * 2), jnp.asarray(1)), jnp.asarray(0.0))


def test_on_endless_records_the_balanced_set_is_exact_and_the_printed_one_loses_the_truth():
    estimate = endless(grid(3)[TRUTH], length=12)
    balanced = coordinate_distances(grid(3), estimate, method="balanced")
    assert balanced[TRUTH] < 1e-9
    assert np.min(np.delete(balanced, TRUTH)) > 0.01
    with pytest.warns(UserWarning, match="loses the truth"):
        printed = coordinate_distances(grid(3), estimate, method="printed")
    assert printed[TRUTH] > 0.1


def test_the_balanced_set_closes_in_on_the_truth():
    y, u = record(grid(3)[TRUTH], steps=20_000, seed=1)
    chosen = select_models(grid(3), y, u, method="balanced", length=16, C_w=20.0)
    assert holds(chosen, TRUTH)
    assert len(chosen) < len(grid(3))
    with (
        pytest.warns(UserWarning, match="loses the truth"),
        pytest.raises(InvalidArgumentError, match="leaves no member in the printed set"),
    ):
        select_models(grid(3), y, u, method="printed", length=16, C_w=20.0)


def test_after_the_truncation_length_the_predictor_has_forgotten():
    length = truncation_length(grid(3), horizon=100)
    norms = []
    for plant in grid(3):
        optimum = lqgap.solve(plant)
        Abar = np.asarray(plant.A - optimum.F @ plant.C)
        norms.append(np.linalg.norm(np.linalg.matrix_power(Abar, length), ord=2))
    assert max(norms) <= 1e-4


def test_the_truncation_length_of_a_scalar_plant_is_the_logarithm():
    """A - FC is a number a there: kappa = 1 and gamma = 1 - |a|."""
    plant = lqgap.LQG([[0.9]], [[1.0]], [[1.0]])
    a = 0.9 - float(lqgap.solve(plant).F[0, 0])
    assert truncation_length(Finite([plant]), horizon=1000) == int(np.ceil(np.log(1e6) / np.log(1 / a)))


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    y, u = record(grid(3)[TRUTH], steps=100, seed=0)
    lost = np.where(np.arange(100)[:, None] == 50, np.nan, y)
    cases = [
        ((grid(3), y, u), {"method": "best"}, "method is 'best'"),
        ((FAMILY, y, u), {"method": "ellipsoid"}, "needs a finite class"),
        ((grid(3), y, u), {"method": "balanced", "length": 4}, "C_w is missing"),
        ((grid(3), y, u), {"method": "balanced", "length": 4, "C_w": -1.0}, "C_w is -1.0"),
        ((grid(3), y, u), {"method": "ellipsoid", "length": 4, "delta": 2.0}, "delta is 2.0"),
        ((grid(3), y, u), {"method": "ellipsoid", "length": 4, "ridge": 0.0}, "ridge is 0.0"),
        ((grid(3), y, u), {"method": "ellipsoid", "length": 100}, "too short"),
        ((grid(3), lost, u), {"method": "ellipsoid", "length": 4}, "lost observations"),
        ((grid(3), y[:, :0], u), {"method": "ellipsoid"}, "y has shape"),
    ]
    for arguments, options, message in cases:
        with pytest.raises(lqgap.LqgapError, match=message):
            select_models(*arguments, **options)
    with pytest.raises(InvalidArgumentError, match="expected a finite class"):
        truncation_length(FAMILY, horizon=10)
