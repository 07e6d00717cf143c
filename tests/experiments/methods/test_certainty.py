import equinox as eqx

from lqgap.adaptive import CertaintyEquivalence
from lqgap.experiments.methods.certainty import Certainty


def test_options_are_those_of_the_learner(setting, members):
    assert eqx.tree_equal(Certainty().make(setting()).policy, CertaintyEquivalence(members))
    published = Certainty(probing=0.3, refutes=False).make(setting()).policy
    assert eqx.tree_equal(published, CertaintyEquivalence(members, probing=0.3, delta=None))
