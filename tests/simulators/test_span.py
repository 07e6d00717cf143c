import numpy as np
import pytest

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.simulators import LinearSpan

FIRST = lqgap.LQG([[0.5, 0.0], [0.0, 0.3]], [[1.0], [0.0]], [[1.0, 1.0]])
SECOND = lqgap.LQG([[0.1, 0.2], [0.0, 0.1]], [[0.0], [1.0]], [[0.0, 0.0]])


def test_members_are_combinations():
    family = LinearSpan([FIRST, SECOND], [(1, 1), (-1, 2)])
    assert family.names == ("t1", "t2")
    member = family.system([1, 1.5])
    for name in "ABC":
        expected = getattr(FIRST, name) + 1.5 * getattr(SECOND, name)
        np.testing.assert_allclose(getattr(member, name), expected)
    assert len(family.grid(4)) == 4


def test_bases_share_cost_and_noise_and_have_an_interval_each():
    with pytest.raises(InvalidSystemError, match="R differs between the bases"):
        LinearSpan([FIRST, lqgap.LQG(SECOND.A, SECOND.B, SECOND.C, R=[[2.0]])], [(0, 1), (0, 1)])
    with pytest.raises(InvalidArgumentError, match="coefficients has 1 entries"):
        LinearSpan([FIRST, SECOND], [(0, 1)])
