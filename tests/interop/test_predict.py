import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from springs import FAMILY, grid

import lqgap
import lqgap as lg
from lqgap.interop import Predictor
from lqgap.policies import (
    AbstractPolicy,
    Controller,
    FiniteHorizonLQG,
    LinearDynamic,
    ModelBank,
    Recurrent,
    StationaryLQG,
    Zero,
)


@functools.cache
def nominal():
    return FAMILY.nominal()


POLICIES = {
    "stationary": lambda: StationaryLQG(nominal()),
    "finite horizon": lambda: FiniteHorizonLQG(nominal(), 7),
    "linear": lambda: LinearDynamic(Dc=[[-0.5]]),
    "zero": lambda: Zero(num_inputs=1, num_outputs=1),
    "bank": lambda: ModelBank(grid(2).systems, horizon=7),
    "recurrent": lambda: Recurrent(num_inputs=1, num_outputs=1, key=jax.random.key(0)),
}


@functools.cache
def policy_of(name):
    return POLICIES[name]()


@pytest.fixture(params=sorted(POLICIES))
def policy(request):
    return policy_of(request.param)


def observations(*shape):
    return np.random.default_rng(0).normal(size=(*shape, 1))


def test_each_environment_has_a_controller_of_its_own(policy):
    record = observations(8, 3)
    controllers = [Controller(policy, limits=(-0.8, 0.8), ends=True) for _ in range(3)]
    predictor, state = Predictor(policy, limits=(-0.8, 0.8)), None
    for y in record:
        action, state = predictor.predict(y, state)
        expected = [controller(own) for controller, own in zip(controllers, y, strict=True)]
        np.testing.assert_allclose(action, expected, rtol=1e-9, atol=1e-12)
        assert action.dtype == np.float64


def test_it_acts_as_the_policy_does_in_a_rollout(policy):
    trajectory = lqgap.rollout(policy, nominal(), horizon=7, key=jax.random.key(1))
    predictor, state = Predictor(policy), None
    for y, u in zip(np.asarray(trajectory.y), np.asarray(trajectory.u), strict=True):
        action, state = predictor.predict(y, state)
        assert action.shape == (1,)
        np.testing.assert_allclose(action, u, rtol=1e-9, atol=1e-12)


def test_an_episode_starts_afresh_where_it_is_said_to(policy):
    record = observations(6, 2)
    predictor = Predictor(policy)
    state, reborn = None, Controller(policy, ends=True)
    for time, y in enumerate(record):
        action, state = predictor.predict(y, state, episode_start=np.array([False, time in (0, 3)]))
        if time == 3:
            reborn.reset()
        np.testing.assert_allclose(action[1], reborn(y[1]), rtol=1e-9, atol=1e-12)


def test_a_first_call_starts_all_episodes_whatever_is_said(policy):
    y = observations(2)
    predictor = Predictor(policy)
    expected, _ = predictor.predict(y)
    for starts in (np.ones(2, dtype=bool), np.zeros(2, dtype=bool)):
        np.testing.assert_array_equal(predictor.predict(y, None, starts, deterministic=False)[0], expected)


class Counting(AbstractPolicy):
    """Counts how often its step is traced."""

    traces: list = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True, default=1)
    num_outputs: int = eqx.field(static=True, default=1)

    def init(self, key):  # noqa: ARG002
        return jnp.asarray(0.0)  # weakly typed, as learners' counts are

    def step(self, memory, y, u_last):  # noqa: ARG002
        self.traces.append(None)
        return memory + jnp.sum(y), -y


def test_it_is_compiled_once_for_each_number_of_environments():
    policy = Counting([])
    predictor = Predictor(policy)
    for count in (1, 4):
        state = None
        for _ in range(3):
            _, state = predictor.predict(observations(count), state, np.zeros(count, dtype=bool))
    assert len(policy.traces) == 2


def test_random_policies_draw_for_each_environment_and_episode_and_can_be_repeated():
    pair = lg.stack([lg.LQG([[0.9]], [[gain]], [[1.0]]) for gain in (1.0, -1.0)])
    policy = ModelBank(pair, mode="thompson")
    y, starts = np.ones((64, 1)), np.ones(64, dtype=bool)
    predictor = Predictor(policy, key=jax.random.key(3))
    first, state = predictor.predict(y)
    second, _ = predictor.predict(y, state, starts)
    assert len(set(first.ravel())) == 2
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(Predictor(policy, key=jax.random.key(3)).predict(y)[0], first)
    assert not np.array_equal(Predictor(policy).predict(y)[0], first)


def test_a_lost_observation_is_predicted_over():
    policy = policy_of("stationary")
    predictor, controller = Predictor(policy), Controller(policy, ends=True)
    state = None
    for y in (np.array([1.0]), np.array([np.nan]), np.array([0.5])):
        action, state = predictor.predict(y, state)
        np.testing.assert_allclose(action, controller(None if np.isnan(y[0]) else y), rtol=1e-9)


def test_a_policy_with_a_horizon_ends():
    predictor, state = Predictor(policy_of("finite horizon")), None
    for _ in range(8):
        _, state = predictor.predict(observations(2), state)
    with pytest.raises(lqgap.InvalidArgumentError, match=r"steps 0..7"):
        predictor.predict(observations(2), state, np.array([True, False]))
    predictor.predict(observations(2), state, np.array([True, True]))


def test_wrong_arguments_are_refused():
    predictor = Predictor(policy_of("stationary"))
    _, state = predictor.predict(observations(2))
    for wrong, message in (
        (np.ones((2, 2)), r"shape \(2, 2\), expected \(1,\) or \(environments, 1\)"),
        (np.ones(()), "observation has shape"),
        (np.ones((0, 1)), "observation has shape"),
        (["high"], "expected 1 numbers"),
        (observations(3), "state is that of 2 environments, and there are 3"),
    ):
        with pytest.raises(lqgap.InvalidArgumentError, match=message):
            predictor.predict(wrong, state)
    with pytest.raises(lqgap.InvalidArgumentError, match="episode_start has shape"):
        predictor.predict(observations(2), state, np.ones(3, dtype=bool))


@pytest.mark.usefixtures("as_users_run_it")
def test_only_policies_predict():
    with pytest.raises(lqgap.InvalidArgumentError, match=r"expected an lqgap\.policies\.AbstractPolicy"):
        Predictor(nominal())


def test_the_state_is_a_tree_of_arrays():
    _, state = Predictor(policy_of("bank")).predict(observations(5))
    assert all(len(leaf) == 5 for leaf in jax.tree.leaves(state))
    assert jnp.all(state.time == 1)
