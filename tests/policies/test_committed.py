import every_policy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import drive, replay

import lqgap as lg
from lqgap.policies import Committed, ModelBank, RandomProbe, StationaryLQG


def test_after_its_time_it_is_the_controller_of_one_member(seed):
    y = np.random.default_rng(seed).normal(size=(12, 2))
    memory, inputs = drive(Committed(ModelBank(every_policy.systems()), 4), y)
    after, _ = drive(ModelBank(every_policy.systems(), mode="map"), y[:5])
    chosen = int(jnp.argmax(after.log_likelihood))  # the observations of steps 0..4 decide
    assert int(jnp.argmax(memory.log_likelihood)) == chosen
    member = StationaryLQG(every_policy.PLANTS[chosen])
    _, expected = replay(member, y, inputs)
    np.testing.assert_allclose(inputs[4:], expected[4:], rtol=1e-12, atol=1e-12)


def test_later_observations_do_not_change_its_mind(seed):
    y = np.random.default_rng(seed).normal(size=(12, 2))
    before, _ = drive(Committed(ModelBank(every_policy.systems()), 4), y[:5])
    after, _ = drive(Committed(ModelBank(every_policy.systems()), 4), y)
    np.testing.assert_array_equal(before.log_likelihood, after.log_likelihood)


def test_probing_finds_the_true_member_of_three():
    """The gains 0.6, 1.0, 1.4 under unit inputs: 300 steps tell them apart by far more than the noise."""
    bank = ModelBank(every_policy.systems())
    policy = RandomProbe(300, Committed(bank, 300))
    for index, plant in enumerate(every_policy.PLANTS):
        trajectory = lg.rollout(policy, plant, horizon=300, key=jax.random.key(index))
        memory, _ = replay(bank, np.asarray(trajectory.y), np.asarray(trajectory.u))
        assert int(jnp.argmax(memory.log_likelihood)) == index


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_bank_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match=r"expected an lqgap\.policies\.ModelBank"):
        Committed(StationaryLQG(every_policy.PLANTS[0]), 3)
    with pytest.raises(lg.InvalidArgumentError, match="steps is -1"):
        Committed(ModelBank(every_policy.systems()), -1)
