import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.linalg
from random_systems import random_definite

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.systems import accumulate_noise, delay_input, discretize, zero_order_hold


def continuous(seed, *, states=3, inputs=2):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(states, states)) - 2 * np.eye(states)
    return A, rng.normal(size=(states, inputs)), random_definite(rng, states)


@pytest.mark.parametrize("dt", [1e-3, 0.3, 5.0])
def test_zero_order_hold_agrees_with_scipy(seed, dt):
    A, B, _ = continuous(seed)
    expected = scipy.signal.cont2discrete((A, B, np.eye(3), np.zeros((3, 2))), dt, method="zoh")
    for ours, theirs in zip(zero_order_hold(A, B, dt=dt), expected, strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dt", [1e-3, 0.3, 5.0])
def test_noise_is_the_integral_over_the_step(seed, dt):
    A, _, W = continuous(seed)

    def rate(s):
        transition = scipy.linalg.expm(A * s)
        return transition @ W @ transition.T

    integral, _ = scipy.integrate.quad_vec(rate, 0, dt, epsrel=1e-12)
    np.testing.assert_allclose(accumulate_noise(A, W, dt=dt), integral, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("fast", [3e2, 2e4, 1e6, 1e8])
def test_noise_over_a_long_step_of_a_stiff_plant_is_its_stationary_covariance(fast):
    """Where exp(-A dt) overflows, the textbook formula would have lost every digit."""
    turn = np.array([[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]])
    noise = accumulate_noise(turn @ np.diag([-fast, -1.0]) @ turn.T, np.eye(2), dt=1.0)
    expected = turn @ np.diag([1 / (2 * fast), (1 - np.exp(-2.0)) / 2]) @ turn.T
    # A is known to a few eps |A|, by its entries and by each squaring, and the slow eigenvalue moves as far.
    np.testing.assert_allclose(noise, expected, rtol=0, atol=10 * np.finfo(float).eps * fast)


def test_large_units_of_input_and_noise_cost_no_digits():
    A, B = zero_order_hold([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1e14]], dt=1.0)
    np.testing.assert_allclose(A, [[1, 1], [0, 1]], rtol=1e-14)
    np.testing.assert_allclose(B, [[0.5e14], [1e14]], rtol=1e-14)
    noise = accumulate_noise([[-1.0]], [[1e12]], dt=1.0)
    np.testing.assert_allclose(noise, [[1e12 * (1 - np.exp(-2)) / 2]], rtol=1e-13)
    np.testing.assert_array_equal(accumulate_noise([[-1.0]], [[0.0]], dt=1.0), [[0.0]])


def test_a_step_far_too_long_is_refused():
    with pytest.raises(InvalidArgumentError, match="too long for this plant"):
        zero_order_hold(np.diag([-1e13, -1.0]), np.ones((2, 1)), dt=1.0)
    with pytest.raises(InvalidArgumentError, match="grows too far"):
        zero_order_hold([[1e4]], [[1.0]], dt=1.0)


def test_an_integrator_has_no_inverse_and_needs_none():
    A, B = zero_order_hold([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], dt=0.1)
    np.testing.assert_allclose(A, [[1, 0.1], [0, 1]], atol=1e-15)
    np.testing.assert_allclose(B, [[0.005], [0.1]], atol=1e-15)


def test_a_physical_parameter_can_be_differentiated():
    def average_cost(stiffness):
        A, B = zero_order_hold([[0.0, 1.0], [-stiffness, -0.5]], [[0.0], [3.0]], dt=0.3)
        return lqgap.solve(lqgap.LQG(A, B, [[1.0, 0.0]], R=[[0.1]])).J

    slope = jax.jit(jax.grad(average_cost))(2.25)
    numeric = (average_cost(2.25 + 1e-5) - average_cost(2.25 - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)
    # Reference value of the mass-spring-damper, stiffness 2.25 and gain 3.
    np.testing.assert_allclose(average_cost(2.25), 3.915149, rtol=2e-7)


@pytest.mark.parametrize("dt", [0, -1.0, np.nan, np.inf, "fast", None, [0.1], 1e300])
def test_a_step_has_a_positive_length(dt):
    with pytest.raises((InvalidArgumentError, InvalidSystemError)):
        zero_order_hold(np.eye(2), np.ones((2, 1)), dt=dt)


def test_shapes_are_checked():
    with pytest.raises(InvalidSystemError, match=r"B has shape \(3, 1\), expected \(2, 1\)"):
        zero_order_hold(jnp.eye(2), np.ones((3, 1)), dt=0.1)
    with pytest.raises(InvalidSystemError, match="W has shape"):
        accumulate_noise(jnp.eye(2), jnp.eye(3), dt=0.1)


def fine_simulation(plant, dt, delays, inputs):
    """States at the samples, from an integration that stops wherever an input switches."""
    A, B = np.asarray(plant.A), np.asarray(plant.B)
    x, states = np.zeros(len(A)), []
    samples = [round((k + 1) * dt, 12) for k in range(len(inputs))]
    switches = {round(k * dt + delay, 12) for k in range(len(inputs)) for delay in delays}
    edges = sorted(t for t in {0.0, *samples, *switches} if t <= samples[-1])
    for start, end in itertools.pairwise(edges):
        steps = [int(np.floor(((start + end) / 2 - delay) / dt)) for delay in delays]
        u = np.array([inputs[step, i] if step >= 0 else 0.0 for i, step in enumerate(steps)])
        flow = scipy.integrate.solve_ivp(
            lambda _, x, u=u: A @ x + B @ u, (start, end), x, method="DOP853", rtol=1e-12, atol=1e-13
        )
        x = flow.y[:, -1]
        if end in samples:
            states.append(x)
    return np.array(states)


def discrete_simulation(plant, num_states, inputs):
    x, states = np.zeros(plant.num_states), []
    for u in inputs:
        x = np.asarray(plant.A) @ x + np.asarray(plant.B) @ u
        states.append(x[:num_states])
    return np.array(states)


@pytest.mark.parametrize("delays", [(0.0, 0.0), (0.05, 0.05), (0.13, 0.25), (0.3, 0.3), (0.1, 0.0)])
def test_held_and_delayed_inputs_agree_with_a_fine_simulation(seed, delays):
    A, B, W = continuous(seed)
    plant = lqgap.LQG(A, B, np.eye(1, 3), W=W)
    inputs = np.random.default_rng(seed).normal(size=(8, 2))
    sampled = discretize(plant, dt=0.1, delay=delays, longest=0.35)
    assert sampled.num_states == 3 + 2 * 4
    expected = fine_simulation(plant, 0.1, delays, inputs)
    np.testing.assert_allclose(discrete_simulation(sampled, 3, inputs), expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(sampled.W[:3, :3], accumulate_noise(A, W, dt=0.1), rtol=1e-12)


def test_a_delay_of_whole_steps_is_that_of_the_discrete_plant():
    A, B, W = continuous(0)
    plant = lqgap.LQG(A, B, np.eye(1, 3), W=W)
    steps = delay_input(discretize(plant, dt=0.1), 3)  # 0.3 / 0.1 is not 3 in floating point
    for name, matrix in discretize(plant, dt=0.1, delay=0.3).matrices().items():
        np.testing.assert_allclose(matrix, getattr(steps, name), rtol=1e-13, atol=1e-15)


def test_a_plant_is_continuous_in_its_delay_and_has_the_derivative_of_differences():
    A, B, W = continuous(1)
    plant = lqgap.LQG(A, B, np.eye(1, 3), W=W)

    def past(delay):
        return discretize(plant, dt=0.1, delay=delay, longest=0.4).A[:3]

    np.testing.assert_allclose(past(0.2 - 1e-7), past(0.2 + 1e-7), atol=1e-6)
    slope = jax.jacfwd(past)(0.23)
    np.testing.assert_allclose(slope, (past(0.23 + 1e-5) - past(0.23 - 1e-5)) / 2e-5, atol=1e-6)


def test_delays_that_cannot_be_are_refused():
    plant = lqgap.LQG([[-1.0]], [[1.0]], [[1.0]])
    for delay, longest, message in (
        (-0.1, None, "not negative"),
        ([0.1, 0.2], None, "or 1"),
        (0.2, 0.1, "longest is 0.1, expected at least delay = 0.2"),
        (200.0, None, "more than 1000"),
        (1e300, None, r"1e\+301 steps, more than 1000"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            discretize(plant, dt=0.1, delay=delay, longest=longest)
    with pytest.raises(InvalidArgumentError, match="longest="):
        jax.jit(lambda delay: discretize(plant, dt=0.1, delay=delay))(0.1)
    beyond = jax.jit(lambda delay: discretize(plant, dt=0.1, delay=delay, longest=0.2).A)(0.3)
    assert np.isnan(beyond).any()
