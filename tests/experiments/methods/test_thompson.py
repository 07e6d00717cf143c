import equinox as eqx

from lqgap.experiments.methods.thompson import Thompson
from lqgap.policies import ModelBank


def test_a_member_that_is_drawn_leads_the_bank(setting, members):
    assert eqx.tree_equal(Thompson().make(setting()).policy, ModelBank(members.systems, mode="thompson"))
