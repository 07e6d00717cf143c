import equinox as eqx
import pytest

from lqgap.adaptive import ThompsonSampling
from lqgap.experiments.methods.thompson import Thompson


@pytest.mark.parametrize("lazy", [False, True])
def test_a_member_that_is_drawn_leads(setting, members, lazy):
    assert eqx.tree_equal(Thompson(lazy=lazy).make(setting()).policy, ThompsonSampling(members, lazy=lazy))
