from lqgap.experiments.methods.base import Knowing
from lqgap.experiments.methods.oracle import Oracle
from lqgap.policy_files import can_save


def test_the_oracle_knows_the_plant_and_no_file_can_hold_it(setting):
    assert Oracle().make(setting()).policy == Knowing(None)
    policy = Oracle().make(setting(ends=True)).policy
    assert policy == Knowing(6)
    assert not can_save(policy)
