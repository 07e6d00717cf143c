import equinox as eqx

from lqgap.experiments.methods.bank import Bank
from lqgap.policies import ModelBank


def test_the_bank_is_that_of_the_class(setting, members):
    assert eqx.tree_equal(Bank().make(setting()).policy, ModelBank(members.systems))
