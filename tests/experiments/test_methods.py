import functools

import equinox as eqx
import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.methods import ABOUT, make_policy, plan_for
from lqgap.experiments.study import EVERY_METHOD, Identify, Methods, Plain, Trained
from lqgap.policies import Committed, ModelBank, ProbingBank, RandomProbe, Recurrent

FAMILY = lg.plants.mass_spring_damper()


@functools.cache
def members():
    return FAMILY.grid(2)


def made(name, options, tmp_path, *, family=FAMILY, ends=False):
    return make_policy(
        name,
        options,
        family=family,
        members=members(),
        horizon=6,
        ends=ends,
        seed=0,
        checkpoints=tmp_path,
    ).policy


@pytest.mark.parametrize("name", ["nominal", "bank", "identify"])
def test_policies_go_on_unless_the_task_ends(tmp_path, name):
    options = EVERY_METHOD.chosen[name]
    assert made(name, options, tmp_path).horizon is None
    assert made(name, options, tmp_path, ends=True).horizon == (None if name == "nominal" else 6)


def test_every_method_is_described():
    assert set(ABOUT) == set(Methods.model_fields) == set(EVERY_METHOD.chosen)


def test_the_nominal_controller_is_that_of_the_middle(tmp_path):
    policy = made("nominal", Plain(), tmp_path)
    np.testing.assert_array_equal(policy.A, FAMILY.nominal().A)
    assert policy.num_transient > 0  # its filter starts as those of the banks do
    of_class = made("nominal", Plain(), tmp_path, family=members())
    np.testing.assert_array_equal(of_class.A, members()[2].A)


def test_identification_probes_and_commits(tmp_path):
    policy = made("identify", Identify(probe=3, scale=1.5), tmp_path)
    assert isinstance(policy, RandomProbe)
    assert isinstance(policy.then, Committed)
    assert (policy.steps, policy.then.steps, float(policy.scale)) == (3, 3, 1.5)


def test_the_oracle_is_no_policy(tmp_path):
    with pytest.raises(lg.InvalidArgumentError, match="no policy for the method 'oracle'"):
        made("oracle", Plain(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cls"), [("bank", ModelBank), ("probing", ProbingBank), ("recurrent", Recurrent)]
)
def test_each_kind_of_policy_is_trained_with_checkpoints(tmp_path, kind, cls):
    policy = made("robust", Trained(policy=kind, steps=2), tmp_path)
    assert isinstance(policy, cls)
    assert list(tmp_path.glob("*.safetensors"))


def test_a_policy_planned_for_another_horizon_keeps_what_was_trained(tmp_path):
    bank = made("bank", Plain(), tmp_path, ends=True)
    trained = eqx.tree_at(lambda b: b.log_prior, bank, bank.log_prior + np.arange(4.0))
    longer = plan_for(RandomProbe(2, trained), members(), horizon=9)
    fresh = ModelBank(members().systems, horizon=9)
    assert longer.horizon == 9
    np.testing.assert_array_equal(longer.then.log_prior, trained.log_prior)
    np.testing.assert_array_equal(longer.then.K, fresh.K)
