import math
from dataclasses import replace

import numpy as np
import pytest
from ten_models import GOLDEN, ten_models

from lqgap.simulators import check_assumptions
from lqgap.theory.constants.corrected import (
    clipping_error,
    corrected_constants,
    episodes,
    shortest_history,
    tail,
)
from lqgap.theory.constants.norms import actual_norms, uniform_norms

NAMES = {
    "N_S": "NS", "N_K": "NK", "gamma_1": "g1", "kappa_2": "kap", "gamma_2": "g2", "N_P": "NP", "N_Sigma": "NSig",
    "N_L": "NL", "Xbar_1": "X1", "Ybar": "Ybar", "Ubar": "Ubar", "Xbar_2": "X2", "D": "D", "l": "l", "Delta": "Delta",
    "beta": "beta_corrected_finite", "psi": "psi", "Kbar_eluder": "Kbar_paper", "Kbar_pairs": "Kbar_pairs",
    "Kbar": "Kbar_logdet", "T_w_eluder": "Tw_paper", "T_w_pairs": "Tw_pairs", "T_w": "Tw_logdet",
}  # fmt: skip


@pytest.fixture(scope="module")
def norms():
    """Of the reference class; its Phi was taken over the first 60 powers, ours is the supremum."""
    report = check_assumptions(ten_models())
    uniform = uniform_norms(report, certificate="predictor")
    largest = max(
        np.linalg.norm(np.linalg.matrix_power(A, k), 2) / max(abs(np.linalg.eigvals(A))) ** k
        for A in np.asarray(report.members.systems.A)
        for k in range(60)
    )
    np.testing.assert_allclose(uniform.Phi, largest, rtol=2e-5)
    uniform = replace(uniform, growth=float(largest / (1 - uniform.rho)))
    return {"uniform": uniform, "sharp": actual_norms(uniform, report)}


@pytest.mark.parametrize("horizon", [1e4, 1e6])
@pytest.mark.parametrize("kind", ["uniform", "sharp"])
def test_the_constants_of_the_reference_class_are_reproduced(norms, horizon, kind):
    expected = GOLDEN[f"H={horizon:.0f},{kind}"]
    found = corrected_constants(norms[kind], horizon=horizon, delta=1 / horizon, C_w=100.0)
    for ours, theirs in NAMES.items():
        np.testing.assert_allclose(found[ours], expected[theirs], rtol=1e-9, err_msg=ours)


def test_the_history_is_the_shortest_that_serves(norms):
    values = corrected_constants(norms["sharp"], horizon=500.0, delta=0.01, C_w=1.0)
    length = shortest_history(norms["sharp"], values, 500.0)
    at = [4 * clipping_error(norms["sharp"], values, k) * values["D"] * 500 for k in (length - 1, length)]
    assert at[1] <= 1 < at[0]


def test_normal_vectors_stay_below_the_tail():
    """Each of 200 batches exceeds it with probability delta / 4 or less: 24 in 200 has probability below 1e-6."""
    horizon, delta = 50, 0.2
    draws = np.random.default_rng(0).normal(size=(200, horizon + 1, 3))
    exceeds = np.max(np.linalg.norm(draws, axis=2), axis=1) > tail(3, float(horizon), delta)
    assert 0 < np.mean(np.linalg.norm(draws, axis=2) > tail(3, 1.0, 0.99)) < 1
    assert np.sum(exceeds) < 24


def count_switches(values, psi):
    """How often the importance score of a sequence of function values reaches 1."""
    merged = np.zeros((values.shape[1],) * 2)
    fresh, switches = merged.copy(), 0
    for f in values:
        fresh = fresh + (f[:, None] - f[None, :]) ** 2
        if np.max(fresh / (merged + psi)) >= 1:
            merged, fresh, switches = merged + fresh, 0 * fresh, switches + 1
    return switches


def test_no_sequence_makes_more_episodes_than_kbar():
    """Values that favour one pair of functions after the other switch often; Kbar is for psi = 4 D^2 + 1."""
    horizon, rng = 4000, np.random.default_rng(0)
    for size in (2, 4, 8):
        values = rng.uniform(size=(horizon, size)) * rng.choice([0.0, 1.0], size=(horizon, size))
        switches = count_switches(values, psi=4 * 1.0**2 + 1)
        assert 3 < switches + 1 <= episodes(size, float(horizon))
    assert episodes(1, float(horizon)) == 1


def test_what_does_not_contract_has_infinite_constants(norms):
    values = corrected_constants(replace(norms["uniform"], gamma_1=1.2), horizon=100.0, delta=0.1, C_w=1.0)
    assert values["N_S"] == norms["uniform"].N_S
    assert values["D"] == values["T_w"] == math.inf


def test_numbers_beyond_double_precision_are_infinite(norms):
    values = corrected_constants(replace(norms["uniform"], N_L=1e100), horizon=100.0, delta=0.1, C_w=1.0)
    assert values["D"] == values["l"] == math.inf
