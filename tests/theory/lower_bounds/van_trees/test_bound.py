"""The bound over ranges as a whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.progress import is_spent, time_budget
from lqgap.simulators import plants
from lqgap.theory.lower_bounds.van_trees import climbing
from lqgap.theory.lower_bounds.van_trees.bound import van_trees_bound


def scalar(**low_high: tuple[float, float]) -> lg.ParameterBox:
    """x' = a x + b u + w, y = c x + v, with some of a, b, c, v unknown."""
    known = {"a": 0.8, "b": 1.0, "c": 1.0, "v": 1.0}

    def build(**values: float) -> lg.LQG:
        given = {**known, **values}
        one = jnp.ones((1, 1))
        return lg.LQG(
            A=given["a"] * one,
            B=given["b"] * one,
            C=given["c"] * one,
            V=given["v"] * one,
            Q=one,
            R=one,
            W=one,
            S0=one,
        )

    return lg.ParameterBox(build, low_high)


def mean_gap_under_prior(policy, family, bound, *, horizon, ends=True):
    """The mean gap of a policy over draws of the bound's own prior, and its standard error."""
    random = np.random.default_rng(1)
    low, high = (np.array([getattr(p, end) for p in family.parameters]) for end in ("low", "high"))
    z = random.uniform(-1, 1, size=(4000, len(low)))
    weight = np.exp(np.asarray(jax.vmap(bound.choice.prior.log_density)(jnp.asarray(z))))
    rows = random.choice(len(z), size=1024, p=weight / weight.sum())
    members = family.members(low + (high - low) * (z[rows] + 1) / 2)
    gaps = lg.gap(policy, members, horizon=horizon, key=jax.random.key(2), num_rollouts=256, ends=ends)
    # Noise is common to all plants, so that its error does not shrink with their number.
    error = np.hypot(np.std(gaps.mean) / np.sqrt(len(rows)), np.mean(gaps.stderr))
    return float(np.mean(gaps.mean)), float(error)


def test_the_bound_is_below_the_mean_gap_of_a_bank_under_its_own_prior():
    family = scalar(b=(0.3, 1.5))
    bound = van_trees_bound(family, horizon=12, iterations=6)
    bank = lg.policies.ModelBank(family.grid(9).systems, horizon=12)
    mean, error = mean_gap_under_prior(bank, family, bound, horizon=12)
    assert error < 0.1 * mean
    assert 0.3 * mean < bound.value < mean - 2 * error


def test_a_bound_does_not_depend_on_units():
    one = van_trees_bound(scalar(b=(0.3, 1.5)), horizon=5, iterations=2)

    def build(b: float) -> lg.LQG:
        plain = scalar(b=(0.3, 1.5)).build(b=b / 1000)
        return lg.LQG(
            A=plain.A, B=plain.B, C=plain.C, Q=plain.Q, R=plain.R, W=plain.W, V=plain.V, S0=plain.S0
        )

    other = van_trees_bound(lg.ParameterBox(build, {"b": (300.0, 1500.0)}), horizon=5, iterations=2)
    np.testing.assert_allclose(other.value, one.value, rtol=1e-6)


def test_what_cannot_be_bounded_is_refused_with_the_reason():
    with pytest.raises(InvalidArgumentError, match="no intervals"):
        van_trees_bound(plants.unknown_sign(), horizon=5)


def test_of_many_parameters_two_are_free_and_the_bound_names_them():
    family = scalar(a=(0.79, 0.81), b=(0.3, 1.5), c=(0.5, 2.0))
    bound = van_trees_bound(family, horizon=6, iterations=1)
    assert bound.box.names == ["b", "c"]
    assert bound.value > 0
    assert any("b and c" in reason for reason in bound.reasons)


def test_a_search_that_is_cut_leaves_a_bound_from_which_a_larger_budget_goes_on(tmp_path, monkeypatch):
    family = scalar(b=(0.3, 1.5))
    first = van_trees_bound(family, horizon=5, iterations=0)
    with time_budget(1e-9) as budget:
        at_once = van_trees_bound(family, horizon=5, iterations=6)
    assert budget.is_cut
    assert at_once.value == first.value > 0
    answers = iter([False, False, True])  # before each step of the climb
    monkeypatch.setattr(climbing, "is_spent", lambda _: is_spent(0.0 if next(answers) else 1.0))
    with time_budget("1 h", folder=tmp_path) as budget:
        cut = van_trees_bound(family, horizon=5, iterations=6)
    assert budget.is_cut
    assert cut.value > first.value
    monkeypatch.undo()
    with time_budget("1 h", folder=tmp_path) as budget:
        again = van_trees_bound(family, horizon=5, iterations=0)
    assert not budget.is_cut
    np.testing.assert_allclose(again.value, cut.value, rtol=1e-3)  # the shares are searched for anew


def test_of_a_large_plant_one_parameter_is_free(monkeypatch):
    monkeypatch.setattr("lqgap.theory.lower_bounds.van_trees.bound.MOST_STATES", 0)
    bound = van_trees_bound(scalar(b=(0.3, 1.5), c=(0.99, 1.01)), horizon=5)
    assert bound.box.names == ["b"]
    assert "only b are unknown in it, others are held at their middles" in bound.reasons
