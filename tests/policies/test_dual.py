import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import replay
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.policies import DualBank, ModelBank


def test_doubt_after_the_next_observation_is_what_integration_over_it_gives():
    plants = lg.stack([random_plant(seed, outputs=1, inputs=1) for seed in (0, 1)])
    policy = DualBank(plants, doubt=3.0)
    rng = np.random.default_rng(0)
    memory = policy.init(jax.random.key(0))
    memory, _ = policy.bank.propose(memory, jnp.asarray([0.4]), jnp.asarray([0.0]))
    weights, candidates = policy.bank.weights(memory), jnp.asarray(rng.normal(size=(5, 1)))
    bank = policy.bank
    y = np.linspace(-40, 40, 20001)
    for u, doubt in zip(candidates, policy._doubts(candidates, memory, weights), strict=True):
        means = [
            float((C @ (A @ x + B @ u))[0])
            for A, B, C, x in zip(bank.A, bank.B, bank.C, memory.xhat, strict=True)
        ]
        scales = np.sqrt(np.asarray(bank.S)[1, :, 0, 0])
        laws = [
            np.exp(-(((y - m) / s) ** 2) / 2) / (s * np.sqrt(2 * np.pi))
            for m, s in zip(means, scales, strict=True)
        ]
        evidence = sum(w * law for w, law in zip(weights, laws, strict=True))
        after = [w * law / np.maximum(evidence, 1e-300) for w, law in zip(weights, laws, strict=True)]
        expected = np.trapezoid(evidence * np.sqrt(after[0] * after[1]), y)
        np.testing.assert_allclose(doubt, 3 * expected, rtol=1e-6)


@pytest.mark.parametrize("outputs", [2, 5])
def test_doubt_with_several_outputs_is_by_bhattacharyyas_coefficient_and_no_rollout_waits_for_another(
    outputs,
):
    plants = lg.stack([random_plant(seed, outputs=outputs, inputs=1) for seed in (0, 1)])
    policy = DualBank(plants, doubt=3.0)
    memory, _ = policy.bank.propose(policy.init(jax.random.key(0)), jnp.ones(outputs), jnp.zeros(1))
    u = jnp.asarray([0.7])
    S, T = np.asarray(policy.bank.S)[1]
    d = np.subtract(
        *(policy.bank.C @ (policy.bank.A @ memory.xhat[:, :, None] + policy.bank.B @ u[:, None]))
    )[:, 0]
    rho = np.exp(-d @ np.linalg.solve(S + T, d) / 4) * (np.linalg.det(S) * np.linalg.det(T)) ** 0.25
    rho /= np.sqrt(np.linalg.det((S + T) / 2))
    weights = policy.bank.weights(memory)
    expected = 3 * rho * np.sqrt(weights[0] * weights[1])
    np.testing.assert_allclose(policy._doubts(u[None], memory, weights)[0], expected, rtol=1e-9)
    gaps = lg.gap(
        policy, plants, horizon=3, key=jax.random.key(0), num_rollouts=500
    )  # factorisations side by side
    assert np.all(np.isfinite(gaps.mean))


def test_the_input_is_the_cheapest_of_all_that_are_considered_and_the_mean_is_one_of_them(seed):
    plants = lg.stack([random_plant(10 * seed + k) for k in range(5)])
    policy = DualBank(plants, doubt=50.0)
    y, u = random_record(seed, random_plant(seed))
    memory, chosen = policy.step(policy.init(jax.random.key(0)), jnp.asarray(y[0]), jnp.asarray(u[0]))
    _, inputs = policy.bank.propose(policy.init(jax.random.key(0)), jnp.asarray(y[0]), jnp.asarray(u[0]))
    weights = policy.bank.weights(memory)

    def cost(candidate):
        deviations = sum(
            w * (candidate - own) @ M @ (candidate - own)
            for w, own, M in zip(weights, inputs, policy.M, strict=True)
        )
        return deviations + policy._doubts(candidate[None], memory, weights)[0]

    mean = weights @ inputs
    away = np.asarray(chosen - mean)
    assert np.count_nonzero(np.abs(away) > 1e-12) <= 1
    for candidate in (mean, chosen + 0.5 * away, chosen - 0.5 * away, mean - away):
        assert cost(chosen) <= cost(candidate) * (1 + 1e-3)


def test_a_settled_posterior_leaves_the_bank_alone():
    plants = lg.stack([random_plant(0), random_plant(1)])
    y, u = random_record(0, random_plant(0))
    certain = jnp.asarray([0.0, -1e3])
    dual, bank = DualBank(plants, doubt=100.0), ModelBank(plants)
    dual, bank = _with_prior(dual, certain), _with_prior(bank, certain)
    np.testing.assert_allclose(replay(dual, y, u)[1], replay(bank, y, u)[1], atol=1e-12)


def test_it_learns_a_sign_that_the_bank_never_learns():
    members = lg.plants.unknown_sign().grid(2)
    costs = [
        lg.gap(make(members.systems), members, horizon=60, key=jax.random.key(0), num_rollouts=500).worst
        for make in (ModelBank, DualBank)
    ]
    assert costs[1] < 20
    assert costs[0] > 200


@pytest.mark.slow
def test_on_a_gain_of_unknown_sign_it_loses_a_tenth_more_than_the_bayes_policy():
    """12.4 by dynamic programming on a grid of beliefs, of which 4000 runs are sure to 0.2."""
    members = lg.plants.unknown_sign().grid(2)
    gap = lg.gap(DualBank(members.systems), members, horizon=200, key=jax.random.key(1), num_rollouts=20_000)
    assert gap.worst + 2 * gap.worst_stderr < 13.8


@pytest.mark.usefixtures("as_users_run_it")
def test_a_doubt_that_costs_nothing_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match="doubt"):
        DualBank(lg.stack([random_plant(0), random_plant(1)]), doubt=0.0)


def _with_prior(policy, log_prior):
    return eqx.tree_at(lambda p: getattr(p, "bank", p).log_prior, policy, log_prior)
