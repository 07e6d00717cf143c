import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from random_systems import random_plant
from ten_models import GOLDEN, ten_models

import lqgap
from lqgap.simulators import check_assumptions
from lqgap.theory.constants.corrected import (
    bias_bound,
    bounded_state,
    clipping_error,
    confidence_radius,
    corrected_constants,
    episodes,
    innovation_tail,
    martingale_bound,
    shortest_history,
    tail,
)
from lqgap.theory.constants.norms import actual_norms, uniform_norms
from lqgap.theory.constants.warm_up import warm_up

NAMES = {
    "N_S": "NS", "N_K": "NK", "gamma_1": "g1", "kappa_2": "kap", "gamma_2": "g2", "N_P": "NP", "N_Sigma": "NSig",
    "N_L": "NL", "Kbar_pairs": "Kbar_pairs", "Kbar": "Kbar_logdet",
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


@pytest.mark.parametrize("horizon", [1e4, 1e6])
@pytest.mark.parametrize("kind", ["uniform", "sharp"])
def test_from_the_state_on_the_chain_of_the_reference_is_reproduced(norms, horizon, kind):
    """The reference has its own Xbar_1, bounded targets and the parts of T_w that the paper names."""
    used, expected = norms[kind], GOLDEN[f"H={horizon:.0f},{kind}"]
    e = innovation_tail(used, horizon, 1 / horizon)
    found = bounded_state(used, Xbar_1=expected["X1"], innovation=e)
    D = found["D"] = bias_bound(used, found)
    found["l"] = shortest_history(used, found, horizon)
    Delta = found["Delta"] = clipping_error(used, found, found["l"])
    bounded = {"variance": D**2 / 4, "scale": 0.0, "log_count": math.log(used.num_members)}
    found["beta"] = confidence_radius(D, Delta, horizon=horizon, delta=1 / horizon, **bounded)
    for form in ("paper", "pairs", "logdet"):
        found[f"Tw_{form}"] = max(warm_up(used, Kbar=expected[f"Kbar_{form}"], C_w=100.0).values())
    names = {"Xbar_2": "X2", "beta": "beta_corrected_finite"}
    for name in found.keys() - {"Xbar_1"}:
        np.testing.assert_allclose(found[name], expected[names.get(name, name)], rtol=1e-9, err_msg=name)


def test_targets_have_lighter_cumulants_than_their_bound_and_heavier_than_gaussian_ones(seed):
    """The exact cumulants of a target on both sides, up to where those on the right end."""
    plant = random_plant(seed)
    o = lqgap.solve(plant)
    target = lqgap.systems.value_target(o, plant, np.ones(3), np.ones(2))
    m = plant.C @ (plant.A @ np.ones(3) + plant.B @ np.ones(2))
    scale = float(np.max(np.linalg.eigvals(np.asarray(target.Phi @ o.S)).real))
    variance = float(target.variance(m, o.S))
    exceeded = False
    for part in (-20.0, -0.9, -0.3, 0.3, 0.6, 0.9, 0.99):
        s = part / (2 * scale)
        cumulant = float(target.cumulant(jnp.asarray(s), m, o.S))
        if abs(part) < 1:
            assert cumulant <= s**2 * variance / (2 * (1 - abs(part))) * (1 + 1e-9)
        exceeded |= cumulant > s**2 * variance / 2
    assert exceeded


def test_the_radius_needs_the_scale_of_heavy_tails():
    """The truth 1, Y = 1 or more times chi-square: exact probabilities that least squares shuts it out.

    The other function is D - 1 above it: as the estimate it shuts out the truth if that is more than the radius.
    """
    steps, delta = 4, 1e-3
    arguments = {"horizon": float(steps), "log_count": math.log(2), "delta": delta, "variance": 2.0}

    def exclusion(scale):
        distance = 1.0
        for _ in range(200):
            distance = math.sqrt(confidence_radius(1 + distance, 0.0, scale=scale, **arguments) / steps)
        return scipy.stats.chi2.sf(steps * (1 + distance / 2), steps)

    assert exclusion(0.0) > 2 * delta  # as if targets were Gaussian
    assert exclusion(1.0) < delta


def test_sums_of_noise_stay_below_bernsteins_bound_and_not_below_a_gaussian_one():
    """Z = chi-square - 1, ten steps; 0.01 of 200000 runs have a standard error of 2.2e-4."""
    delta, steps = 0.01, 10
    sums = np.sum(np.random.default_rng(0).normal(size=(200_000, steps)) ** 2 - 1, axis=1)
    corrected, gaussian = (
        martingale_bound(2.0, scale, horizon=float(steps), delta=delta) for scale in (1.0, 0.0)
    )
    assert np.mean(sums > corrected) < delta
    assert np.mean(sums > gaussian) > 5e-3 > 10 * np.mean(sums > corrected)


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
