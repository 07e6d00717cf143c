import equinox as eqx

from lqgap.experiments.methods.likeliest import Likeliest
from lqgap.policies import ModelBank


def test_the_likeliest_member_leads_the_bank(setting, members):
    assert eqx.tree_equal(Likeliest().make(setting()).policy, ModelBank(members.systems, mode="map"))
