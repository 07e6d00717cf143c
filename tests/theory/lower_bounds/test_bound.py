"""The contract of all kinds of lower bounds."""

import numpy as np
import pytest
from opposite import opposite

from lqgap.evaluation.gap import references_of
from lqgap.theory.lower_bounds.belief import belief_bound
from lqgap.theory.lower_bounds.bound import Members, PairBound
from lqgap.theory.lower_bounds.minimax import BOUNDS


@pytest.mark.parametrize("kind", BOUNDS)
def test_a_bound_is_below_the_exact_minimax_gap_and_rests_on_a_prior(kind):
    members = Members(opposite(), references_of(opposite(), horizon=1))
    assert BOUNDS[kind].applies(members)
    found = BOUNDS[kind].bound(members)
    assert 0 < found.value <= belief_bound(members.references, num_steps=1).upper * (1 + 1e-9)
    assert np.all(found.prior >= 0)
    np.testing.assert_allclose(np.sum(found.prior), 1)
    assert 1 <= found.num_steps <= 2


def test_the_best_pair_has_an_even_prior_on_its_members():
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    found = PairBound(np.array([0.1, 0.3, 0.2]), np.array([4, 5, 6])).best(pairs, num_members=4)
    assert (found.value, found.num_steps, found.prior.tolist()) == (0.3, 5, [0.5, 0.0, 0.5, 0.0])
