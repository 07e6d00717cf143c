import equinox as eqx
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.adaptive import VTROptions
from lqgap.adaptive.vtr.calibration import VTRConstants, calibrate, target_variance
from lqgap.simulators import Finite
from lqgap.systems.natural import common_coordinates
from lqgap.systems.optimum import belief_covariance

PAPER = VTROptions.as_in_the_paper(selection="likelihood", weighting="equal")


def test_the_variance_of_a_target_is_that_of_a_long_run():
    plant, draws, steps = random_plant(3), np.random.default_rng(0), 40_000
    optimum = lg.solve(plant)
    A, B, C, Q = (np.asarray(x) for x in (plant.A, plant.B, plant.C, plant.Q))
    K, L, S, P = (np.asarray(x) for x in (optimum.K, optimum.L, optimum.S, optimum.P))
    zeta = P - C.T @ Q @ C
    spread = np.trace((L.T @ zeta @ L + Q) @ S)
    innovations = draws.normal(size=(steps, len(C))) @ np.linalg.cholesky(S).T
    x, beliefs, surprises = np.zeros(len(A)), [], []
    for innovation in innovations:
        predicted = A @ x - B @ (K @ x)
        y = C @ predicted + innovation
        beliefs.append(x)
        x = predicted + L @ innovation
        expected = predicted @ zeta @ predicted + (C @ predicted) @ Q @ (C @ predicted) + spread
        surprises.append(x @ zeta @ x + y @ Q @ y - expected)
    X = belief_covariance(optimum, plant)
    surprises = np.asarray(surprises[100:])
    # By blocks of 400 steps, whose means are nearly independent: four standard errors.
    squares = (surprises**2)[: 99 * 400].reshape(99, 400).mean(axis=1)
    stderr = squares.std(ddof=1) / np.sqrt(99)
    assert abs(squares.mean() - float(target_variance(optimum, plant, X))) < 4 * stderr
    assert stderr < 0.05 * squares.mean()
    sizes = (np.asarray(beliefs[100:]) ** 2).sum(axis=1)[: 99 * 400].reshape(99, 400).mean(axis=1)
    assert abs(sizes.mean() - np.trace(X)) < 4 * sizes.std(ddof=1) / np.sqrt(99)


def test_the_length_is_the_first_at_which_clipping_hardly_changes_a_prediction():
    plants = [random_plant(0), random_plant(1)]
    constants = calibrate(lg.stack(plants), options=PAPER)
    for length, is_enough in ((constants.length, True), (constants.length - 1, False)):
        left_out = []
        for plant in plants:
            optimum = lg.solve(plant)
            Abar = np.asarray(plant.A - optimum.F @ plant.C)
            seen = np.asarray(plant.C) @ np.linalg.matrix_power(Abar, length) @ np.asarray(plant.A)
            whitened = np.linalg.solve(np.linalg.cholesky(np.asarray(optimum.S)), seen)
            left_out.append(np.sqrt(np.trace(whitened @ belief_covariance(optimum, plant) @ whitened.T)))
        assert (max(left_out) <= 1e-3) == is_enough


def test_scales_grow_with_the_class_as_stated_and_nothing_bounds_the_switches():
    plant = random_plant(0)
    one, two = (calibrate(lg.stack([plant] * n), options=PAPER, delta=0.1) for n in (2, 4))
    np.testing.assert_allclose(two.beta / one.beta, np.log(40) / np.log(20))
    assert two.psi == pytest.approx(one.psi)
    assert one.max_switches >= 1_000_000
    by_variance = calibrate(lg.stack([plant] * 2), options=VTROptions(confidence="targets"), delta=0.1)
    np.testing.assert_allclose([by_variance.psi, by_variance.beta], [1.0, 8 * np.log(20)])


def test_the_ball_holds_beliefs_of_a_state_that_is_far_off_at_first():
    """Ten times the largest root mean square of a belief, from covariances of the whole loop."""
    near = random_plant(0)
    far = eqx.tree_at(lambda plant: plant.S0, near, 900 * np.eye(near.num_states))
    bound = calibrate(lg.stack([far]), options=PAPER).state_bound
    plant = Finite.of(far).in_coordinates(common_coordinates(Finite.of(far).systems))[0]
    optimum, n = lg.solve(plant), plant.num_states
    A, B, C, V, W = (np.asarray(getattr(plant, name)) for name in ("A", "B", "C", "V", "W"))
    K, prior, sizes = np.asarray(optimum.K), np.asarray(plant.S0), []
    joint = np.block([[prior, np.zeros((n, n))], [np.zeros((n, 2 * n))]])  # of the state and its prediction
    for _ in range(100):
        gain = prior @ C.T @ np.linalg.inv(C @ prior @ C.T + V)
        correct = np.block([[np.eye(n), np.zeros((n, n))], [gain @ C, np.eye(n) - gain @ C]])
        joint = correct @ joint @ correct.T
        joint[n:, n:] += gain @ V @ gain.T
        sizes.append(np.trace(joint[n:, n:]))
        step = np.block([[A, -B @ K], [np.zeros((n, n)), A - B @ K]])
        joint = step @ joint @ step.T
        joint[:n, :n] += W
        prior = A @ (prior - gain @ C @ prior) @ A.T + W
    np.testing.assert_allclose(bound, 10 * np.sqrt(max(sizes)), rtol=1e-6)
    steady = np.sqrt(np.trace(belief_covariance(optimum, plant)))
    assert bound > 3 * 10 * steady


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_constants_are_named():
    for name, value in (("psi", -1.0), ("beta", "wide"), ("length", 0), ("num_warmup", -3)):
        given = {"psi": 1.0, "beta": 1.0, "length": 3, "state_bound": 1.0, name: value}
        with pytest.raises(lg.InvalidArgumentError, match=name):
            VTRConstants(**given)
    with pytest.raises(lg.InvalidArgumentError, match="delta"):
        calibrate(lg.stack([random_plant(0)]), delta=2.0)
