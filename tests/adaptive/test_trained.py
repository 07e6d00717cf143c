import equinox as eqx
import jax
import numpy as np

import lqgap as lg
from lqgap.adaptive import TrainedPolicy, run
from lqgap.policies import ModelBank, RandomProbe, Recurrent
from lqgap.policy_files import load_policy, save_policy


def test_a_policy_does_what_it_does_and_its_bank_tells_what_it_believes():
    members = lg.plants.mass_spring_damper().grid(2)
    bank = ModelBank(members.systems)
    plain, told = (
        run(policy, members[1], key=jax.random.key(0), horizon=511)
        for policy in (bank, TrainedPolicy(bank, members))
    )
    np.testing.assert_array_equal(plain.excess, told.excess)
    assert plain.num_members is None
    assert told.num_members[-1] == 1
    np.testing.assert_array_equal(told.theta[-1], members.parameters[1])


def test_a_bank_inside_of_another_policy_is_found_and_other_policies_tell_nothing():
    members = lg.plants.mass_spring_damper().grid(2)
    assert TrainedPolicy(RandomProbe(3, ModelBank(members.systems)), members).members is members
    assert TrainedPolicy(ModelBank(members.subset([0, 1]).systems), members).members is None
    recurrent = TrainedPolicy(Recurrent(num_inputs=1, num_outputs=1, key=jax.random.key(0)), members)
    assert recurrent.members is None
    assert recurrent.snapshot(recurrent.init(jax.random.key(0))).plausible.size == 0


def test_a_file_holds_it(tmp_path):
    members = lg.plants.mass_spring_damper().grid(2)
    policy = TrainedPolicy(ModelBank(members.systems), members)
    save_policy(tmp_path / "it.safetensors", policy)
    assert eqx.tree_equal(load_policy(tmp_path / "it.safetensors"), policy)
