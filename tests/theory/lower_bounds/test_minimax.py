import jax
import numpy as np
import pytest
from opposite import opposite

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.gap import references_of
from lqgap.policies import ModelBank
from lqgap.report.page import WORDS
from lqgap.theory import minimax_lower_bound
from lqgap.theory.lower_bounds import ranges
from lqgap.theory.lower_bounds.belief import belief_bound
from lqgap.theory.lower_bounds.minimax import BOUNDS
from lqgap.training import TrainingOptions

HORIZON = 20


def small_class(family):
    """Corners of the family, or a few members where it has many."""
    is_narrow = sum(parameter.high > parameter.low for parameter in family.parameters) <= 3
    return family.grid(2) if is_narrow else family.sample(4, key=jax.random.key(0))


@pytest.mark.slow
@pytest.mark.parametrize(("horizon", "ends"), [(1, True), (2, True), (1, False)])
def test_where_the_minimax_is_known_the_bound_is_it(horizon, ends):
    bound = minimax_lower_bound(opposite(), horizon=horizon, ends=ends)
    # The last input of a task that ends has no effect; of one that goes on it has.
    num_steps = horizon if ends else horizon + 1
    exact = belief_bound(references_of(opposite(), horizon=horizon, ends=ends), num_steps=num_steps)
    assert bound.kind in ("bayes", "input-only", "two-point")  # at one step all are within 1e-5 of it
    assert bound.pair == (0, 1)
    assert bound.value <= exact.upper
    np.testing.assert_allclose(bound.value, exact.value, rtol=1e-3)
    assert all(value <= exact.upper * (1 + 1e-9) for value in bound.by_kind.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", lg.plants.FAMILIES)
def test_no_bank_is_below_the_bound_on_any_family_trained_or_not(name):
    members = small_class(lg.plants.FAMILIES[name]())
    bound = minimax_lower_bound(members, horizon=HORIZON)
    assert bound.value > 0
    banks = [
        ModelBank(members.systems, horizon=HORIZON, mode=mode) for mode in ("mixture", "map", "thompson")
    ]
    options = TrainingOptions(steps=100)
    trained = lg.train_robust(banks[0], members, horizon=HORIZON, key=jax.random.key(1), options=options)
    for bank in (*banks, trained.policy):
        estimate = lg.gap(bank, members, horizon=HORIZON, key=jax.random.key(0), num_rollouts=512)
        assert bound.value <= estimate.worst + 4 * estimate.worst_stderr


def test_one_member_has_no_gap_to_bound():
    bound = minimax_lower_bound(lg.LQG([[0.9]], [[1.0]], [[1.0]]), horizon=10)
    assert (bound.value, bound.pair, bound.kind) == (0.0, (0, 0), "trivial")


def test_members_that_are_equal_have_no_gap_to_bound():
    plant = lg.LQG([[0.9]], [[1.0]], [[1.0]])
    assert 0 <= minimax_lower_bound(lg.stack([plant, plant]), horizon=1).value < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-9, 1e-8, 1e-7])
def test_rounding_lifts_no_bound_above_what_a_policy_reaches(width):
    plants = [lg.LQG([[0.3 + a, 0.2], [0.0, 0.5]], [[0.0], [1.0]], [[1.0, 0.0]]) for a in (0.0, width)]
    middle = lg.LQG([[0.3 + width / 2, 0.2], [0.0, 0.5]], [[0.0], [1.0]], [[1.0, 0.0]])
    policy = lg.policies.FiniteHorizonLQG(middle, 10)
    reached = max(float(lg.exact_gap(policy, plant, horizon=10)) for plant in plants)
    assert lg.minimax_lower_bound(lg.stack(plants), horizon=10).value <= reached


def test_a_large_class_is_thinned_and_its_members_keep_their_numbers(monkeypatch):
    members = lg.plants.mass_spring_damper().grid(3)
    monkeypatch.setattr("lqgap.theory.lower_bounds.minimax.MAX_MEMBERS", 3)
    thinned = minimax_lower_bound(members, horizon=6)
    chosen = [0, 4, 8]
    assert set(thinned.pair) <= set(chosen)
    assert set(np.flatnonzero(thinned.prior)) <= set(chosen)
    alone = minimax_lower_bound(members.subset(chosen), horizon=6)
    np.testing.assert_allclose(thinned.value, alone.value, rtol=1e-9)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("members", "horizon", "message"),
    [
        (lambda: [opposite()], 5, "members is a list"),
        (opposite, -1, "horizon is -1"),
    ],
)
def test_what_cannot_be_is_named(members, horizon, message):
    with pytest.raises(InvalidArgumentError, match=message):
        minimax_lower_bound(members(), horizon=horizon)


def test_every_kind_is_tried_and_has_words_for_the_page(monkeypatch):
    few = "lqgap.theory.lower_bounds.belief.{}_NODES"  # coarse numbers will do
    monkeypatch.setattr(few.format("MIN"), {1: 8})
    monkeypatch.setattr(few.format("MAX"), {(1, 1): 8, (1, 2): 8})
    bound = minimax_lower_bound(opposite(), horizon=1)
    assert set(bound.by_kind) == {"trivial", *BOUNDS}
    assert {*BOUNDS, *ranges.BOUNDS} <= set(WORDS)
    assert all(kind == bound.kind for kind, bound in BOUNDS.items())


@pytest.mark.usefixtures("as_users_run_it")
def test_only_the_kinds_asked_for_are_tried():
    bound = minimax_lower_bound(opposite(), horizon=2, kinds=("two-point",))
    assert set(bound.by_kind) == {"trivial", "two-point"}
    assert bound.kind == "two-point"
    with pytest.raises(InvalidArgumentError, match="kinds is 'magic', expected one of"):
        minimax_lower_bound(opposite(), horizon=2, kinds=("magic",))
    for none in ("bayes", []):
        with pytest.raises(InvalidArgumentError, match="expected a list with at least one"):
            minimax_lower_bound(opposite(), horizon=2, kinds=none)
