import jax
import numpy as np
import pytest
from random_systems import general_plant, random_plant

import lqgap as lg
from lqgap.policies import LinearDynamic, RandomProbe, StationaryLQG


@pytest.mark.parametrize("draw", [random_plant, general_plant])
def test_the_regret_of_a_linear_policy_is_its_exact_cost_less_the_optimal_average(draw, seed):
    plant = draw(seed)
    policy = LinearDynamic([[0.3]], [[0.1, -0.2]], [[0.1], [0.2]], [[-0.1, 0.0], [0.0, 0.1]])
    estimate = lg.regret(policy, plant, horizon=25, key=jax.random.key(seed), num_rollouts=2000)
    exact = lg.exact_cost(policy, plant, horizon=25) - 26 * lg.solve(plant).J
    # Four standard errors, estimated from the rollouts themselves.
    assert abs(estimate.mean[0] - exact) < 4 * estimate.stderr[0]
    parts = estimate.first - estimate.last + estimate.per_step.sum(axis=1) + estimate.transient
    np.testing.assert_allclose(parts, estimate.mean, rtol=1e-9)
    np.testing.assert_allclose(estimate.totals.mean(axis=1), estimate.mean, rtol=1e-9)
    assert estimate.has_light_tail
    low, high = estimate.interval[0]
    assert low < estimate.mean[0] < high
    np.testing.assert_allclose(estimate.value, 26 * lg.solve(plant).J)


def test_from_the_steady_state_there_is_no_transient():
    plant = random_plant(1)
    steady = lg.LQG(
        plant.A, plant.B, plant.C, Q=plant.Q, R=plant.R, W=plant.W, V=plant.V, S0=lg.solve(plant).Sigma
    )
    estimate = lg.regret(StationaryLQG(steady), steady, horizon=10, key=jax.random.key(0), num_rollouts=10)
    np.testing.assert_allclose(estimate.transient, 0, atol=1e-9)
    np.testing.assert_allclose(estimate.per_step, 0, atol=1e-18)


def test_a_diverging_loop_has_an_infinite_regret():
    plant = lg.LQG([[0.9]], [[1.0]], [[1.0]])
    wild = LinearDynamic(Dc=[[50.0]])
    assert lg.regret(wild, plant, horizon=300, key=jax.random.key(0), num_rollouts=8).mean == np.inf


def test_costs_by_brute_force_give_the_same_regret():
    plant = lg.plants.unknown_sign().grid(2)[0]
    policy = RandomProbe(3, StationaryLQG(plant))
    estimate = lg.regret(policy, plant, horizon=20, key=jax.random.key(0), num_rollouts=2000)
    costs = jax.vmap(lambda key: lg.rollout(policy, plant, horizon=20, key=key).cost.sum())(
        jax.random.split(jax.random.key(1), 4000)
    )
    stderr = np.hypot(estimate.stderr[0], np.std(costs) / np.sqrt(4000))
    assert abs(estimate.mean[0] - (np.mean(costs) - 21 * lg.solve(plant).J)) < 4 * stderr


def test_limits_are_part_of_the_policy():
    plant = random_plant(0)
    limits = ([-0.1, -0.2], [0.1, 0.2])
    gains = LinearDynamic(Dc=[[-1.0, 0.0], [0.0, -1.0]])
    clipped = lg.regret(gains, plant, horizon=15, key=jax.random.key(0), num_rollouts=500, limits=limits)
    costs = jax.vmap(lambda key: lg.rollout(gains, plant, horizon=15, key=key, limits=limits).cost.sum())(
        jax.random.split(jax.random.key(1), 4000)
    )
    stderr = np.hypot(clipped.stderr[0], np.std(costs) / np.sqrt(4000))
    assert abs(clipped.mean[0] - (np.mean(costs) - 16 * lg.solve(plant).J)) < 4 * stderr
