import functools
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import replay
from random_systems import general_plant, random_plant

import lqgap as lg
from lqgap.evaluation.gap import sample_runs
from lqgap.policies import FiniteHorizonLQG, LinearDynamic, ModelBank, RandomProbe, StationaryLQG, Zero


@functools.cache
def unknown_sign():
    return lg.plants.unknown_sign().grid(2).subset([1, 0])  # b = +1 first: ties of the likelihood go to it


def test_the_estimate_agrees_with_the_exact_gap(seed):
    plants = [random_plant(seed), random_plant(seed + 5)]
    members = lg.simulators.Finite(plants)
    policy = LinearDynamic([[0.3]], [[0.1, -0.2]], [[0.1], [0.2]], [[-0.1, 0.0], [0.0, 0.1]])
    estimate = lg.gap(policy, members, horizon=20, key=jax.random.key(seed), num_rollouts=2000)
    exact = [float(lg.exact_gap(policy, plant, horizon=20)) for plant in plants]
    # Four standard errors, estimated from the rollouts themselves.
    assert np.all(np.abs(estimate.mean - exact) < 4 * estimate.stderr)
    assert np.all(estimate.stderr > 0)
    np.testing.assert_allclose(estimate.per_step.sum(axis=1), estimate.mean, rtol=1e-12)
    np.testing.assert_allclose(estimate.average, estimate.mean.mean(), rtol=1e-12)
    assert estimate.worst_stderr == estimate.stderr[estimate.argworst]
    assert (estimate.worst, estimate.argworst) == (estimate.mean.max(), int(np.argmax(estimate.mean)))


PLANTS = [
    "mass_spring_damper",
    "boeing_747",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("unknown_sign", "web_server")),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("two_mass_spring", "thermal_zones")),
]


@pytest.mark.parametrize("family", [*PLANTS, "general"])
def test_the_identity_agrees_with_brute_force_differences_of_costs(family):
    plant = general_plant(3) if family == "general" else getattr(lg.plants, family)().nominal()
    horizon, rollouts = 30, 4000
    policy = RandomProbe(3, StationaryLQG(plant), scale=0.5)
    estimate = lg.gap(policy, plant, horizon=horizon, key=jax.random.key(0), num_rollouts=rollouts)
    keys = jax.random.split(jax.random.key(1), rollouts)
    cost = jax.jit(
        jax.vmap(
            lambda key: (
                jnp.sum(lg.rollout(policy, plant, horizon=horizon, key=key).cost)
                - jnp.sum(lg.rollout(FiniteHorizonLQG(plant, horizon), plant, horizon=horizon, key=key).cost)
            )
        )
    )(keys)
    stderr = np.hypot(estimate.stderr[0], np.std(cost) / np.sqrt(rollouts))
    assert abs(np.mean(cost) - estimate.mean[0]) < 4 * stderr


def test_without_an_end_the_gap_is_the_difference_of_costs_in_all_time():
    """Random inputs for three steps, then the optimal controller: after them nothing is lost any more."""
    plant = lg.plants.mass_spring_damper().nominal()
    best = StationaryLQG(plant)
    policy, keys = RandomProbe(3, best, scale=2.0), jax.random.split(jax.random.key(1), 4000)
    short, long = (
        lg.gap(policy, plant, horizon=h, key=jax.random.key(0), num_rollouts=4000, ends=False).mean[0]
        for h in (2, 60)
    )
    cost = _costs(policy, plant, keys) - _costs(best, plant, keys)
    # Other noise: the error of the gap itself is far smaller than that of a difference of costs.
    error = 5 * np.std(cost) / np.sqrt(len(cost))
    assert abs(np.mean(cost) - short) < error < 0.2 * short
    assert abs(long - short) < error


@eqx.filter_jit
@functools.partial(eqx.filter_vmap, in_axes=(None, None, 0))
def _costs(policy, plant, key):
    return jnp.sum(lg.rollout(policy, plant, horizon=150, key=key).cost)


@pytest.mark.slow
def test_the_gap_table_of_the_class_of_unknown_sign():
    """Reference values from the costs of 20,000 rollouts: the standard deviation of a total cost makes their
    standard errors 0.33, 0.51 and 1.13 for horizons of 50, 200 and 1000 (docs/decisions/0009)."""
    table = {
        50: {"thompson": 23.4, "probe 5": 35.1, "probe 50": 802},
        200: {"thompson": 24.4, "probe 5": 36.1, "probe 50": 806},
        1000: {"thompson": 23.7, "probe 5": 35.0, "probe 50": 806},
    }
    exact = {50: 324.950, 200: 1553.272, 1000: 8107.029}
    differencing = {50: 0.33, 200: 0.51, 1000: 1.13}
    zero = Zero(num_inputs=1, num_outputs=1)
    for horizon, rows in table.items():
        for index in range(2):
            np.testing.assert_allclose(
                lg.exact_gap(zero, unknown_sign()[index], horizon=horizon), exact[horizon], atol=6e-4
            )
        likeliest = ModelBank(unknown_sign().systems, horizon=horizon, mode="map")
        mixture = ModelBank(unknown_sign().systems, horizon=horizon)
        symmetric = lg.gap(mixture, unknown_sign(), horizon=horizon, key=jax.random.key(0), num_rollouts=500)
        # Inputs that cancel are played by the likeliest member: it learns, if slowly.
        assert np.all(symmetric.mean + 3 * symmetric.stderr < 800)
        estimate = lg.gap(
            likeliest, unknown_sign(), horizon=horizon, key=jax.random.key(0), num_rollouts=20_000
        )
        assert np.all(np.abs(estimate.mean - [16.48, 17.30]) < 3 * np.hypot(estimate.stderr, 0.06))
        for row, policy in {
            "thompson": ModelBank(unknown_sign().systems, horizon=horizon, mode="thompson"),
            "probe 5": RandomProbe(5, likeliest),
            "probe 50": RandomProbe(50, likeliest),
        }.items():
            estimate = lg.gap(
                policy, unknown_sign(), horizon=horizon, key=jax.random.key(0), num_rollouts=8000
            )
            # The last row was printed without decimals.
            stderr = np.sqrt(
                estimate.average_stderr**2 + differencing[horizon] ** 2 + (row == "probe 50") * 9
            )
            assert abs(estimate.average - rows[row]) < 3 * stderr, (horizon, row, estimate.average)


def test_an_adaptive_policy_against_an_independent_simulation():
    """The likeliest member's controller on a scalar plant of unknown sign, in plain NumPy."""
    horizon, rollouts, a = 30, 40_000, 0.95
    P, K, M = 0.0, np.zeros(horizon + 1), np.zeros(horizon + 1)
    for h in reversed(range(horizon + 1)):
        M[h] = 1 + P
        K[h] = P * a / M[h]
        P = 1 + a * a * P - a * P * K[h]
    rng = np.random.default_rng(0)
    x, u, Sigma, total = rng.normal(size=rollouts), np.zeros(rollouts), 1.0, np.zeros(rollouts)
    belief, score = np.zeros((2, rollouts)), np.zeros((2, rollouts))
    sign = np.asarray([[1.0], [-1.0]])
    for h in range(horizon + 1):
        y = x + rng.normal(size=rollouts)
        gain = Sigma / (Sigma + 1)
        predicted = a * belief + sign * u
        belief = predicted + gain * (y - predicted)
        score -= 0.5 * (y - predicted) ** 2 / (Sigma + 1)
        u = np.where(score[0] >= score[1], -K[h] * belief[0], K[h] * belief[1])
        total += M[h] * (u - K[h] * belief[1]) ** 2  # the true sign is minus
        x, Sigma = a * x - u + rng.normal(size=rollouts), a * a * (1 - gain) * Sigma + 1
    policy = ModelBank(unknown_sign().systems, horizon=horizon, mode="map")
    estimate = lg.gap(policy, unknown_sign(), horizon=horizon, key=jax.random.key(0), num_rollouts=8000)
    stderr = np.hypot(estimate.stderr[1], np.std(total) / np.sqrt(rollouts))
    assert abs(estimate.mean[1] - np.mean(total)) < 4 * stderr


def test_noise_is_common_to_policies():
    plant = random_plant(0)
    quiet = lg.gap(
        Zero(num_inputs=2, num_outputs=2), plant, horizon=10, key=jax.random.key(0), num_rollouts=50
    )
    random = RandomProbe(0, Zero(num_inputs=2, num_outputs=2))  # has a key of its own, and does not use it
    np.testing.assert_allclose(
        lg.gap(random, plant, horizon=10, key=jax.random.key(0), num_rollouts=50).mean, quiet.mean, rtol=1e-12
    )


def test_noise_is_independent_of_how_many_run_at_a_time(monkeypatch):
    plant = random_plant(0)
    policy = StationaryLQG(plant)
    whole = lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=50)
    monkeypatch.setattr(sys.modules["lqgap.evaluation.monte_carlo"], "PAIRS_AT_A_TIME", 16)
    parts = lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=50)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.stderr, whole.stderr, rtol=1e-9)
    assert parts.num_rollouts == whole.num_rollouts == 50


def test_runs_are_those_of_the_gaps_and_cost_what_the_policy_costs():
    plant = random_plant(0)
    policy = LinearDynamic([[0.3]], [[0.1, -0.2]], [[0.1], [0.2]], [[-0.1, 0.0], [0.0, 0.1]])
    given = {"horizon": 20, "key": jax.random.key(1), "num_rollouts": 2000}
    block = sample_runs(policy, lg.stack([plant]), **given)
    np.testing.assert_allclose(block.totals[0], lg.gap(policy, plant, **given).totals, rtol=1e-9)
    y, u = np.asarray(block.y[0]), np.asarray(block.u[0])
    np.testing.assert_allclose(replay(policy, y[7], u[7])[1], u[7], rtol=1e-10, atol=1e-12)
    costs = np.einsum("rti,ij,rtj->r", y, plant.Q, y) + np.einsum("rti,ij,rtj->r", u, plant.R, u)
    # Four standard errors, estimated from the rollouts themselves.
    stderr = np.std(costs) / np.sqrt(len(costs))
    assert abs(np.mean(costs) - lg.exact_cost(policy, plant, horizon=20)) < 4 * stderr


def test_it_goes_on_until_the_standard_error_is_small(monkeypatch):
    plant = random_plant(0)
    policy = Zero(num_inputs=2, num_outputs=2)
    first = lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=100)
    monkeypatch.setattr(sys.modules["lqgap.evaluation.monte_carlo"], "PAIRS_AT_A_TIME", 100)
    estimate = lg.gap(
        policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=100, target_stderr=first.stderr[0] / 3
    )
    assert estimate.stderr[0] <= first.stderr[0] / 3
    assert 500 < estimate.num_rollouts < 2000


def test_saturation_is_part_of_the_policy():
    plant = random_plant(0)
    best = FiniteHorizonLQG(plant, 10)
    free = lg.gap(best, plant, horizon=10, key=jax.random.key(0), num_rollouts=50)
    bound = lg.gap(best, plant, horizon=10, key=jax.random.key(0), num_rollouts=50, limits=(-1e-3, 1e-3))
    zero = lg.gap(
        Zero(num_inputs=2, num_outputs=2), plant, horizon=10, key=jax.random.key(0), num_rollouts=50
    )
    np.testing.assert_allclose(free.mean, 0, atol=1e-18)
    np.testing.assert_allclose(bound.mean, zero.mean, rtol=0.05)


def test_single_precision_agrees_with_double():
    plant = random_plant(0)
    policy = Zero(num_inputs=2, num_outputs=2)
    double, single = (
        lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=2000, precision=precision)
        for precision in ("float64", "float32")
    )
    np.testing.assert_allclose(single.mean, double.mean, rtol=1e-4)  # the same noise


def test_a_policy_that_destabilises_a_member_has_an_infinite_gap_there():
    members = lg.simulators.Finite([lg.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -1.0)])
    wild = LinearDynamic(Dc=[[-1.0]])
    estimate = lg.gap(wild, members, horizon=2000, key=jax.random.key(0), num_rollouts=3)
    assert np.isfinite(estimate.mean[0])
    assert estimate.mean[1] == estimate.worst == estimate.stderr[1] == np.inf
    sequential = lg.gap(wild, members, horizon=2000, key=jax.random.key(0), num_rollouts=3, target_stderr=1e3)
    assert sequential.num_rollouts < 1000  # an infinite gap is not waited for


def test_the_estimate_keeps_its_totals_and_judges_their_tail():
    plant = random_plant(0)
    policy = Zero(num_inputs=2, num_outputs=2)
    estimate = lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=300)
    np.testing.assert_allclose(estimate.totals.mean(axis=1), estimate.mean)
    np.testing.assert_allclose(estimate.totals.std(axis=1, ddof=1) / np.sqrt(300), estimate.stderr)
    assert estimate.has_light_tail  # a linear loop: a quadratic form of normal numbers
    low, high = estimate.interval[0]
    assert low < float(lg.exact_gap(policy, plant, horizon=10)) < high
    few = lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=64)
    assert not few.has_light_tail
    assert few.worst_interval == (-np.inf, np.inf)


def test_a_policy_that_fails_now_and_then_has_no_interval_but_quantiles_and_a_share():
    """An input of a thousand in one run of fifty: by its own chance, not that of the noise."""

    class Erratic(Zero):
        def init(self, key):
            return jnp.where(jax.random.uniform(key) < 0.02, 1e3, 0.0)

        def step(self, memory, y, u_last):  # noqa: ARG002
            return memory, memory * jnp.ones_like(u_last)

    plant = random_plant(0)
    policy = Erratic(num_inputs=2, num_outputs=2)
    estimate = lg.gap(policy, plant, horizon=10, key=jax.random.key(0), num_rollouts=300)
    assert not estimate.has_light_tail
    assert "tail of the gaps is heavy" in estimate.doubt
    share = estimate.share_diverged[0]
    assert 0 < share < 0.02 + 4 * np.sqrt(0.02 / 300)
    assert np.all(estimate.quantiles < 100 * estimate.value)
    assert estimate.mean[0] > 100 * estimate.value[0] * share


def test_blocks_are_traced_once_for_all_keys_policies_and_parts():
    traced = []

    class Counting(Zero):
        def step(self, memory, y, u_last):  # noqa: ARG002
            traced.append(1)
            return memory, jnp.zeros_like(u_last)

    plant = random_plant(0)
    for seed in (0, 1):
        lg.gap(
            Counting(num_inputs=2, num_outputs=2),
            plant,
            horizon=10,
            key=jax.random.key(seed),
            num_rollouts=64,
        )
    assert len(traced) == 1


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    plant = random_plant(0)
    with pytest.raises(lg.InvalidArgumentError, match="num_rollouts"):
        lg.gap(StationaryLQG(plant), plant, horizon=3, key=jax.random.key(0), num_rollouts=1)
    with pytest.raises(lg.InvalidArgumentError, match="target_stderr"):
        lg.gap(StationaryLQG(plant), plant, horizon=3, key=jax.random.key(0), target_stderr=0)
    unseen = lg.LQG([[2.0]], [[1.0]], [[0.0]])
    with pytest.raises(lg.NotConvergedError, match="member 0"):
        lg.gap(Zero(num_inputs=1, num_outputs=1), unseen, horizon=2000, key=jax.random.key(0))
