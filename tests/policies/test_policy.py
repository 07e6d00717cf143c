"""The contract that every policy keeps."""

import equinox as eqx
import every_policy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import drive

import lqgap as lg
from lqgap.policies import (
    AbstractLinearPolicy,
    DualBank,
    FiniteHorizonLQG,
    ModelBank,
    StationaryLQG,
    explore_then_commit,
)

STEPS = every_policy.HORIZON + 1


@pytest.fixture(params=sorted(every_policy.NAMES))
def policy(request):
    return every_policy.make_policies()[request.param]


def observations(seed=0):
    return np.random.default_rng(seed).normal(size=(STEPS, 2))


def test_inputs_are_finite_and_causal(policy):
    y = observations()
    _, u = drive(policy, y)
    assert u.shape == (STEPS, 1)
    assert np.all(np.isfinite(u))
    later = y.copy()
    later[5:] += 1.0
    np.testing.assert_array_equal(drive(policy, later)[1][:5], u[:5])


def test_the_same_key_gives_the_same_inputs(policy):
    np.testing.assert_array_equal(drive(policy, observations())[1], drive(policy, observations())[1])


def test_a_lost_observation_means_predict_only(policy):
    y = observations()
    y[4] = np.nan
    y[6, 0] = np.nan
    memory, u = drive(policy, y)
    assert np.all(np.isfinite(u))
    assert all(
        np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(eqx.filter(memory, eqx.is_inexact_array))
    )
    assert np.all(u[:4] == drive(policy, observations())[1][:4])


def test_a_wrapper_trains_what_the_policy_inside_trains():
    for name, part in (("RandomProbe", "then"), ("DualBank", "bank"), ("ProbingBank", "bank")):
        wrapper = every_policy.make_policies()[name]
        inside, expected = getattr(wrapper.trainable(), part), getattr(wrapper, part).trainable()
        assert jax.tree.leaves(inside) == jax.tree.leaves(expected)


def test_inputs_depend_on_what_the_plant_received_not_on_what_was_chosen(policy):
    y = observations()
    applied = jnp.asarray(np.clip(np.random.default_rng(1).normal(size=(STEPS, 1)), -0.2, 0.2))
    _, u = drive(policy, y, u_last=applied)
    assert np.all(np.isfinite(u))
    uses_inputs = not isinstance(
        policy,
        type(every_policy.make_policies()["LinearDynamic"]) | type(every_policy.make_policies()["Zero"]),
    )
    assert np.any(np.asarray(u) != np.asarray(drive(policy, y)[1])) == uses_inputs


@pytest.mark.slow
def test_single_precision_stays_single(policy):
    single = jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, policy)
    memory, u = drive(single, observations(), dtype=jnp.float32)
    assert u.dtype == jnp.float32
    assert not [leaf for leaf in jax.tree.leaves(memory) if leaf.dtype == jnp.float64]


def test_what_is_trainable_has_a_derivative(policy):
    trainable, frozen = eqx.partition(policy, policy.trainable())

    @eqx.filter_jit
    @eqx.filter_grad
    def slope(trainable, frozen):
        return jnp.sum(drive(eqx.combine(trainable, frozen), observations())[1] ** 2)

    if jax.tree.leaves(trainable):
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slope(trainable, frozen)))


def test_a_linear_policy_is_the_linear_recursion_it_claims_to_be(policy):
    if not isinstance(policy, AbstractLinearPolicy):
        return
    y = observations()
    xi, inputs = np.zeros(len(policy.at(0).Ac)), []
    for time in range(STEPS):
        now = policy.at(time)
        inputs.append(now.Cc @ xi + now.Dc @ y[time])
        xi = now.Ac @ xi + now.Bc @ y[time]
    np.testing.assert_allclose(drive(policy, y)[1], inputs, rtol=1e-10, atol=1e-12)


def test_a_policy_is_traced_once_for_one_shape(policy):
    count = 0

    @eqx.filter_jit
    def step(policy, memory, y, u_last):
        nonlocal count
        count += 1
        return policy.step(memory, y, u_last)

    memory, u = policy.init(jax.random.key(0)), jnp.zeros(1)
    for y in observations()[:3]:
        memory, u = step(policy, memory, jnp.asarray(y), u)
    assert count == 1


def test_a_policy_planned_for_a_shorter_horizon_is_the_policy_of_that_horizon():
    systems = lg.stack(every_policy.PLANTS)
    for longer, fresh in (
        (ModelBank(systems, horizon=every_policy.HORIZON), ModelBank(systems, horizon=8)),
        (
            FiniteHorizonLQG(every_policy.PLANTS[0], every_policy.HORIZON),
            FiniteHorizonLQG(every_policy.PLANTS[0], 8),
        ),
    ):
        moved = longer.for_horizon(8)
        assert moved.K.shape == longer.K.shape
        np.testing.assert_allclose(moved.K[:9], fresh.K, rtol=1e-12)
        np.testing.assert_allclose(moved.L[:9], fresh.L, rtol=1e-12)


def test_wrappers_and_mixtures_plan_what_is_inside_and_keep_what_was_trained():
    systems = lg.stack(every_policy.PLANTS)
    bank = ModelBank(systems, horizon=every_policy.HORIZON)
    bank = eqx.tree_at(lambda b: b.log_prior, bank, bank.log_prior + np.arange(3.0))
    dual = eqx.tree_at(lambda d: d.bank, DualBank(systems, horizon=every_policy.HORIZON), bank)
    committed = explore_then_commit(bank, 2)
    assert dual.needs_smoothing
    assert not committed.needs_smoothing
    longer, looking = (each.for_horizon(20, systems=systems) for each in (committed, dual))
    fresh = ModelBank(systems, horizon=20)
    assert longer.horizon == looking.horizon == 20
    for found in (longer.then.bank, looking.bank):
        np.testing.assert_array_equal(found.log_prior, bank.log_prior)
        np.testing.assert_array_equal(found.K, fresh.K)
    with pytest.raises(lg.InvalidArgumentError, match="a longer plan needs the systems"):
        committed.for_horizon(20)
    assert StationaryLQG(every_policy.PLANTS[0]).for_horizon(3).horizon is None
