import equinox as eqx

from lqgap.adaptive import FilterBank
from lqgap.experiments.methods.hysteresis import Hysteresis


def test_options_are_those_of_the_bank(setting, members):
    usual = Hysteresis().make(setting()).policy
    assert eqx.tree_equal(usual, FilterBank(members, "hysteresis"))
    published = Hysteresis(margin=2.0, dwell=7, refutes=False).make(setting()).policy
    assert eqx.tree_equal(published, FilterBank(members, "hysteresis", margin=2.0, dwell=7, delta=None))
