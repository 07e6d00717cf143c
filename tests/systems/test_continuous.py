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
from lqgap.systems import accumulate_noise, zero_order_hold


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
