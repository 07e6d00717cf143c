import equinox as eqx

from lqgap.adaptive import FilterBank
from lqgap.experiments.methods.likeliest import Likeliest


def test_the_likeliest_member_leads_the_bank(setting, members):
    assert eqx.tree_equal(Likeliest().make(setting()).policy, FilterBank(members, "likeliest"))
