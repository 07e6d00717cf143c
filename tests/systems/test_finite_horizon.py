from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from random_systems import directional_difference, random_plant

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError, NotConvergedError


def test_golden_values_and_matrices(golden, golden_plant):
    for horizon, value in golden["V_star"].items():
        np.testing.assert_allclose(
            lqgap.solve_finite(golden_plant, horizon=int(horizon)).value, value, rtol=1e-9
        )
    finite = lqgap.solve_finite(golden_plant, horizon=10)
    for name, expected in golden["finite_H10"].items():
        symbol, step = name.split("_")[:2]
        np.testing.assert_allclose(getattr(finite, symbol)[int(step)], expected, rtol=1e-9, atol=1e-12)


def least_squares_value(plant, horizon):
    """The optimal cost without Riccati equations: one convex quadratic problem.

    Let y0 be what would be observed without inputs. Then u = Theta y0 with a block lower triangular
    Theta is the most general linear causal policy, and y = y0 + G u, so the cost is quadratic in Theta.
    """
    n, m, p, steps = plant.num_states, plant.num_inputs, plant.num_outputs, horizon + 1
    power = [np.linalg.matrix_power(np.asarray(plant.A), k) for k in range(steps)]
    # y0 = free @ (x_0, w_0, .., w_{H-1}) + z
    free = np.zeros((steps * p, steps * n))
    respond = np.zeros((steps * p, steps * m))
    for t in range(steps):
        for s in range(t + 1):
            free[t * p : (t + 1) * p, s * n : (s + 1) * n] = plant.C @ power[t - s]
            if s < t:
                respond[t * p : (t + 1) * p, s * m : (s + 1) * m] = plant.C @ power[t - 1 - s] @ plant.B
    noise = scipy.linalg.block_diag(plant.S0, *[plant.W] * horizon)
    covariance = free @ noise @ free.T + np.kron(np.eye(steps), plant.V)
    Q, R = np.kron(np.eye(steps), plant.Q), np.kron(np.eye(steps), plant.R)
    causal = np.kron(np.tril(np.ones((steps, steps))), np.ones((m, p))).astype(bool)
    # cost(Theta) = tr(Q cov) + 2 tr(G'Q cov Theta') + tr(Theta cov Theta' (R + G'QG))
    hessian = np.kron(R + respond.T @ Q @ respond, covariance)[np.ix_(causal.ravel(), causal.ravel())]
    slope = (respond.T @ Q @ covariance)[causal]
    return np.trace(Q @ covariance) - slope @ np.linalg.solve(hessian, slope)


@pytest.mark.parametrize("horizon", [0, 1, 6])
def test_three_independent_ways_to_the_optimal_cost_agree(seed, horizon):
    plant = random_plant(seed, radius=1.1)
    finite = lqgap.solve_finite(plant, horizon=horizon)
    completed_squares = (
        jnp.trace(finite.P[0] @ plant.S0)
        + sum(jnp.trace(P @ plant.W) for P in finite.P[1:])
        + jnp.sum(jnp.einsum("tji,tjk,tkl->til", finite.K, finite.M, finite.K) * finite.Sigma_filtered)
        + (horizon + 1) * jnp.trace(plant.Q @ plant.V)
    )
    np.testing.assert_allclose(finite.value, completed_squares, rtol=1e-11)
    np.testing.assert_allclose(finite.value, least_squares_value(plant, horizon), rtol=1e-9)


def test_in_a_task_that_goes_on_every_step_is_like_in_the_long_run(seed):
    plant = random_plant(seed, radius=1.1)
    horizon, o = 6, lqgap.solve(plant)
    finite = lqgap.solve_finite(plant, horizon=horizon, ends=False)
    for name in ("P", "K", "M"):
        np.testing.assert_array_equal(
            getattr(finite, name), np.broadcast_to(getattr(o, name), getattr(finite, name).shape)
        )
    ended = lqgap.solve_finite(plant, horizon=horizon)
    np.testing.assert_array_equal(finite.L, ended.L)
    completed_squares = (
        jnp.trace(o.P @ plant.S0)
        + (horizon + 1) * (jnp.trace(o.P @ plant.W) + jnp.trace(plant.Q @ plant.V))
        + jnp.sum((o.K.T @ o.M @ o.K) * jnp.sum(finite.Sigma_filtered, axis=0))
    )
    np.testing.assert_allclose(finite.value, completed_squares, rtol=1e-11)
    # Once the filter has settled, another step costs J; without an end it is so up to the last step.
    long, longer = (lqgap.solve_finite(plant, horizon=steps, ends=False).value for steps in (300, 301))
    np.testing.assert_allclose(longer - long, o.J, rtol=1e-9)


def test_a_plant_that_cannot_be_stabilised_does_not_go_on():
    plant = lqgap.LQG([[1.1]], [[0.0]], [[1.0]])
    assert np.isfinite(lqgap.solve_finite(plant, horizon=5).value)
    with pytest.raises(NotConvergedError, match="not detectable or not stabilisable"):
        lqgap.solve_finite(plant, horizon=5, ends=False)


def test_the_gain_comes_from_the_next_cost_matrix_and_the_last_gain_is_zero(seed):
    plant = random_plant(seed)
    A, B = plant.A, plant.B
    finite = lqgap.solve_finite(plant, horizon=5)
    np.testing.assert_allclose(finite.P[5], plant.C.T @ plant.Q @ plant.C, rtol=1e-12)
    np.testing.assert_array_equal(finite.K[5], 0)
    for h in range(5):
        P = finite.P[h + 1]
        np.testing.assert_allclose(finite.M[h], plant.R + B.T @ P @ B, rtol=1e-12)
        np.testing.assert_allclose(finite.M[h] @ finite.K[h], B.T @ P @ A, rtol=1e-9, atol=1e-12)


def test_the_difference_identities_hold(seed):
    plant = random_plant(seed)
    A, B, C = plant.A, plant.B, plant.C
    o, f = lqgap.solve(plant), lqgap.solve_finite(plant, horizon=6)
    identity, Abar = jnp.eye(3), A - o.F @ C
    for h in range(6):
        np.testing.assert_allclose(
            f.P[h] - o.P, (A - B @ o.K).T @ (f.P[h + 1] - o.P) @ (A - B @ f.K[h]), atol=1e-10
        )
        error, keep = f.Sigma[h] - o.Sigma, identity - f.L[h] @ C
        np.testing.assert_allclose(f.Sigma[h + 1] - o.Sigma, Abar @ error @ (A @ keep).T, atol=1e-10)
        gain_error = (identity - o.L @ C) @ error @ C.T @ jnp.linalg.inv(f.S[h])
        np.testing.assert_allclose(f.L[h] - o.L, gain_error, atol=1e-10)
        filtered_error = (identity - o.L @ C) @ error @ keep.T
        np.testing.assert_allclose(f.Sigma_filtered[h] - o.Sigma_filtered, filtered_error, atol=1e-10)


def test_costs_grow_with_time_to_go_and_covariances_with_time(seed):
    plant = random_plant(seed)
    plant = lqgap.LQG(plant.A, plant.B, plant.C, Q=plant.Q, R=plant.R)  # S0 = W
    finite = lqgap.solve_finite(plant, horizon=8)
    for sequence in (finite.P[::-1], finite.Sigma):
        smallest = [jnp.linalg.eigvalsh(after - before)[0] for before, after in pairwise(sequence)]
        assert min(smallest) > -1e-12


def test_the_long_run_approaches_the_stationary_optimum(seed):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    shorter, longer = (lqgap.solve_finite(plant, horizon=h).value for h in (400, 401))
    np.testing.assert_allclose(longer - shorter, optimum.J, rtol=1e-8)


def test_the_value_is_differentiable_and_batched():
    plants = lqgap.stack([random_plant(seed) for seed in range(3)])
    values = jax.vmap(lambda plant: lqgap.solve_finite(plant, horizon=7).value)(plants)
    assert values.shape == (3,)
    plant = random_plant(0)

    @jax.jit
    def value(A, S0):
        changed = lqgap.LQG(A, plant.B, plant.C, Q=plant.Q, R=plant.R, W=plant.W, V=plant.V, S0=S0)
        return lqgap.solve_finite(changed, horizon=7).value

    point, direction = (plant.A, plant.S0), (jnp.ones((3, 3)), jnp.eye(3))
    slopes = jax.grad(value, (0, 1))(*point)
    along = sum(jnp.sum(slope * change) for slope, change in zip(slopes, direction, strict=True))
    np.testing.assert_allclose(along, directional_difference(value, point, direction), rtol=1e-8)


@pytest.mark.parametrize("horizon", [-1, 2.5, "ten", None, True, lambda: jnp.asarray(1.0), 10**9, 10**20])
def test_a_horizon_that_is_no_count_raises(horizon):
    with pytest.raises(InvalidArgumentError, match=r"horizon is .*expected"):
        lqgap.solve_finite(random_plant(0), horizon=horizon() if callable(horizon) else horizon)


def test_a_batch_or_an_overflow_raises():
    with pytest.raises(InvalidSystemError, match="batch"):
        lqgap.solve_finite(lqgap.stack([random_plant(0)]), horizon=3)
    with pytest.raises(NotConvergedError, match="beyond double precision"):
        lqgap.solve_finite(lqgap.LQG([[1e150]], [[0.0]], [[1.0]]), horizon=5)


def test_a_plant_cast_to_single_precision_is_solved_in_it():
    plant = random_plant(0)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), plant)
    value = lqgap.solve_finite(single, horizon=5).value
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, lqgap.solve_finite(plant, horizon=5).value, rtol=1e-5)
