import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.interop import ensemble as module
from lqgap.interop.ensemble import Ensemble
from lqgap.interop.members import as_plants, read_family
from lqgap.policies import LinearDynamic

ALL = np.ones(3, dtype=bool)


def make(plant, *, count=3, horizon=5, limits=(-np.inf, np.inf), seed=0):
    members = read_family(plant)
    ensemble = Ensemble(members, as_plants(members.examples()), count=count, horizon=horizon, limits=limits)
    for index in range(count):
        ensemble.seed(index, np.random.default_rng(seed + index))
    return ensemble


def quiet(plant):
    """The plant without process noise and next to no measurement noise, all states measured."""
    return lqgap.LQG(plant.A, plant.B, np.eye(3), R=plant.R, W=np.zeros((3, 3)), V=1e-24 * np.eye(3))


def test_without_noise_it_is_the_plants_recursion(seed):
    plant = quiet(random_plant(seed))
    ensemble = make(plant)
    ensemble.start(np.arange(3))
    for time in range(6):
        y, u = ensemble.y.copy(), np.random.default_rng(time).normal(size=(3, 2))
        step = ensemble.step(u, ALL)
        np.testing.assert_allclose(ensemble.y, y @ plant.A.T + u @ plant.B.T, atol=1e-9)
        expected = [v @ plant.Q @ v + w @ plant.R @ w for v, w in zip(y, u, strict=True)]
        np.testing.assert_allclose(step.cost, expected, rtol=1e-12)
        assert np.all(step.truncated == (time == 5))
        assert not step.terminated.any()


@pytest.mark.parametrize("gain", [0.0, 0.2], ids=["no input", "feedback"])
def test_the_mean_cost_is_the_exact_cost(seed, gain):
    # Static feedback, so that the cost has all of W, V and S0 in it. The standard error is estimated from 1000
    # independent sums; a correct mean is further than 4 of them from the truth once in 16 000 seeds.
    plant = random_plant(seed, radius=0.8)
    policy = LinearDynamic(Dc=-gain * np.ones((2, 2)))
    ensemble = make(plant, count=1000, horizon=4)
    ensemble.start(np.arange(1000))
    total = np.zeros(1000)
    for _ in range(5):
        total += ensemble.step(-gain * ensemble.y @ np.ones((2, 2)), np.ones(1000, dtype=bool)).cost
    exact = lqgap.exact_cost(policy, plant, horizon=4)
    assert abs(np.mean(total) - exact) <= 4 * np.std(total) / np.sqrt(1000)


def test_the_chance_of_one_plant_does_not_depend_on_the_others():
    many, alone = make(random_plant(0)), make(random_plant(0), count=1, seed=2)
    many.start(np.arange(3))
    alone.start(np.array([0]))
    for _ in range(5):
        np.testing.assert_allclose(many.y[2], alone.y[0], rtol=1e-12)
        many.step(np.ones((3, 2)), ALL)
        alone.step(np.ones((1, 2)), ALL[:1])


def test_plants_that_do_not_run_stay_and_lose_no_noise():
    paused, steady = make(random_plant(0)), make(random_plant(0))
    paused.start(np.arange(3))
    steady.start(np.arange(3))
    before = paused.y.copy()
    paused.step(np.full((3, 2), np.nan), np.array([False, False, False]))
    np.testing.assert_array_equal(paused.y, before)
    for ensemble in (paused, steady):
        ensemble.step(np.ones((3, 2)), ALL)
    np.testing.assert_array_equal(paused.y, steady.y)


def test_noise_does_not_repeat_after_a_block(monkeypatch):
    monkeypatch.setattr(module, "MAX_BLOCK", 4)
    white = lqgap.LQG([[0.0]], [[1.0]], [[1.0]])
    ensemble = make(white, count=1, horizon=40)
    ensemble.start(np.array([0]))
    seen = []
    for _ in range(41):
        seen.append(float(ensemble.y[0, 0]))
        ensemble.step(np.zeros((1, 1)), ALL[:1])
    assert len(set(seen)) == 41


def test_a_block_is_as_good_as_another(monkeypatch):
    # The same law whatever the block: y is white with variance W + V = 2 here, so that the mean square of 20 000
    # values is 2 with a standard error of 2 sqrt(2 / 20 000) = 0.02.
    monkeypatch.setattr(module, "MAX_BLOCK", 3)
    white = lqgap.LQG([[0.0]], [[1.0]], [[1.0]])
    ensemble = make(white, count=2000, horizon=10)
    ensemble.start(np.arange(2000))
    squares = []
    for _ in range(10):
        ensemble.step(np.zeros((2000, 1)), np.ones(2000, dtype=bool))
        squares.append(np.mean(ensemble.y**2))
    assert abs(np.mean(squares) - 2) <= 4 * 0.02


def test_inputs_are_clipped_before_they_cost_and_act():
    plant = quiet(random_plant(0))
    ensemble = make(plant, limits=(np.array([-1.0, -2.0]), np.array([1.0, 0.5])))
    ensemble.start(np.arange(3))
    y = ensemble.y.copy()
    step = ensemble.step(np.array([[5.0, 5.0], [-5.0, -5.0], [0.1, 0.2]]), ALL)
    applied = np.array([[1.0, 0.5], [-1.0, -2.0], [0.1, 0.2]])
    np.testing.assert_array_equal(step.u, applied)
    np.testing.assert_allclose(ensemble.y, y @ plant.A.T + applied @ plant.B.T, atol=1e-9)


def test_what_leaves_double_precision_terminates_with_finite_numbers():
    ensemble = make(lqgap.LQG([[1e200]], [[1.0]], [[1.0]]), horizon=50)
    ensemble.start(np.arange(3))
    terminated = np.zeros(3, dtype=bool)
    for _ in range(3):
        step = ensemble.step(np.ones((3, 1)), ~terminated)
        terminated |= step.terminated
        assert np.all(np.isfinite(step.cost))
        assert np.all(np.isfinite(ensemble.y))
    assert terminated.all()


def test_another_generator_forgets_what_was_drawn_ahead():
    members = lqgap.stack([random_plant(seed) for seed in range(50)])
    first, second = make(members, count=1), make(members, count=1, seed=9)
    for ensemble in (first, second):
        ensemble.start(np.array([0]))
    second.seed(0, np.random.default_rng(0))
    second.start(np.array([0]))
    assert first.member == second.member
    np.testing.assert_array_equal(first.y, second.y)
