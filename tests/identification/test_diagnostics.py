import numpy as np
import pytest
import scipy
from random_systems import random_plant
from records import record, records

import lqgap
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.identification import diagnose
from lqgap.identification.markov import estimate_markov
from lqgap.identification.realization import Realization, innovation_form
from lqgap.identification.subspace import realize

PLANT = random_plant(3, radius=0.8)


def as_form(plant):
    return innovation_form(lqgap.solve(plant), plant)


@pytest.mark.parametrize("make", [lambda plant: plant, as_form], ids=["plant", "realisation"])
def test_probabilities_of_a_true_model_are_uniform(make):
    """Kolmogorov and Smirnov over 60 records, each of the three tests; a true null fails one in a thousand."""
    model = make(PLANT)
    found = [diagnose(model, y, u, num_lags=3) for y, u in records(PLANT, steps=1000, seed=0, count=60)]
    for name in ("whiteness", "input_blindness", "size"):
        assert scipy.stats.kstest([getattr(d, name) for d in found], "uniform").pvalue > 1e-3, name


def changed(**changes):
    names = ("A", "B", "C", "Q", "R", "W", "V")
    values = {name: getattr(PLANT, name) for name in names} | changes
    return lqgap.LQG(**values)


def test_each_test_finds_its_own_fault():
    y, u = record(PLANT, steps=4000, seed=0)
    wrong_input = diagnose(changed(B=1.3 * PLANT.B), y, u)
    assert wrong_input.input_blindness < 1e-6
    wrong_dynamics = diagnose(changed(A=0.5 * PLANT.A), y, u)
    assert wrong_dynamics.whiteness < 1e-6
    wrong_noise = diagnose(changed(W=1.5 * PLANT.W, V=1.5 * PLANT.V), y, u)  # the same gains
    assert wrong_noise.size < 1e-6
    assert wrong_noise.whiteness > 1e-3
    np.testing.assert_allclose(wrong_noise.ratio, 1 / 1.5, rtol=0.1)
    assert not any(d.agrees() for d in (wrong_input, wrong_dynamics, wrong_noise))
    right = diagnose(PLANT, y, u)
    assert right.agrees()
    least = min(right.whiteness, right.input_blindness, right.size)
    assert right.agrees(level=2.9 * least)
    assert not right.agrees(level=3.1 * least)


def test_the_innovations_are_those_of_the_filter():
    y, u = record(PLANT, steps=200, seed=1)
    run = lqgap.systems.filter_record(PLANT, y, u)
    squares = [
        e @ np.linalg.solve(S, e) for e, S in zip(np.asarray(run.innovation), np.asarray(run.S), strict=True)
    ]
    found = diagnose(PLANT, y, u)
    np.testing.assert_allclose(np.sum(found.innovations**2, axis=1), squares, rtol=1e-9)
    fit = 1 - np.sqrt(np.mean(np.asarray(run.innovation) ** 2, axis=0)) / np.std(y, axis=0)
    np.testing.assert_allclose(found.fit, fit, rtol=1e-9)


def test_an_estimate_agrees_with_a_fresh_record():
    fitted = realize(estimate_markov(*record(PLANT, steps=20_000, seed=0)), order=3)
    fresh = record(PLANT, steps=1000, seed=1)
    assert diagnose(fitted, *fresh).agrees()
    np.testing.assert_allclose(diagnose(fitted, *fresh).fit, diagnose(PLANT, *fresh).fit, atol=0.02)


@pytest.mark.parametrize("make", [lambda plant: plant, as_form], ids=["plant", "realisation"])
def test_lost_observations_are_left_out(make):
    y, u = record(PLANT, steps=2000, seed=2)
    y[np.random.default_rng(0).uniform(size=y.shape) < 0.02] = np.nan
    found = diagnose(make(PLANT), y, u, num_lags=3)
    lost = np.any(np.isnan(y), axis=1)
    assert np.all(np.isnan(found.innovations[lost]))
    assert np.all(np.isfinite(found.innovations[~lost]))
    assert np.all(np.isfinite(found.fit))


def test_inputs_that_stand_still_are_no_evidence():
    y, _ = record(PLANT, steps=500, seed=0, sigma_u=0.0)
    assert diagnose(PLANT, y, np.zeros((500, 2))).input_blindness == 1.0


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    y, u = record(PLANT, steps=50, seed=0)
    form = as_form(PLANT)
    runaway = Realization(3.0 * form.A, form.B, form.C, 0.0 * form.F, form.S)
    with pytest.raises(InvalidArgumentError, match="model is a str"):
        diagnose("model", y, u)
    with pytest.raises(InvalidArgumentError, match="too short"):
        diagnose(PLANT, y, u, num_lags=20)
    with pytest.raises(InvalidArgumentError, match="num_lags is 0"):
        diagnose(PLANT, y, u, num_lags=0)
    with pytest.raises(NotConvergedError, match="predictions diverge"):
        diagnose(runaway, *record(PLANT, steps=1000, seed=0))
