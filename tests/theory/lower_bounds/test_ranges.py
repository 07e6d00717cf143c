"""Bounds over ranges; a stand-in takes the place of kinds that take long."""

import types

import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.simulators import Ball, ParameterBox
from lqgap.theory import LowerBound, RangesBound, minimax_lower_bound
from lqgap.theory.lower_bounds import ranges
from lqgap.theory.lower_bounds.ranges import bound_ranges, boxes_of


def build(pole, gain, sign=1):
    return lg.LQG([[pole]], [[sign * gain]], [[1.0]])


INTERVALS = {"pole": (0.5, 0.95), "gain": (0.5, 2.0)}
INSIDE = LowerBound(0.3, "bayes", (0, 1), np.array([0.5, 0.5]), 2, {"trivial": 0.0, "bayes": 0.3})


def stand_in(value_fn, confidence=1.0):
    """A kind of bound whose value is a function of the box."""

    def find(family, *, horizon, ends):
        return types.SimpleNamespace(
            value=value_fn(family, horizon),
            kind="stand-in",
            spread=0.01,
            confidence=confidence,
            prior="uniform",
            reasons=("few steps",) if ends else (),
        )

    return find


@pytest.fixture
def kind(monkeypatch):
    """Puts a function in the list of kinds."""
    return lambda bound_fn: monkeypatch.setattr(ranges, "BOUNDS", {"stand-in": bound_fn})


def test_the_larger_of_the_ranges_and_of_members_inside_is_the_bound_of_the_ranges(kind):
    family = ParameterBox(build, INTERVALS)
    kind(stand_in(lambda _, horizon: 0.01 * horizon))
    larger = bound_ranges(family, INSIDE, horizon=100)
    assert (larger.value, larger.kind, larger.spread, larger.prior) == (1.0, "stand-in", 0.01, "uniform")
    assert larger.reasons == ("few steps",)
    smaller = bound_ranges(family, INSIDE, horizon=10)
    assert (smaller.value, smaller.kind, smaller.spread, smaller.confidence) == (0.3, "bayes", 0.0, 1.0)
    assert smaller.by_kind == {"trivial": 0.0, "bayes": 0.3, "stand-in": 0.1}
    assert "first 2 steps" in smaller.reasons[0]
    assert smaller.over == larger.over == "ranges"
    assert smaller.is_inherited
    assert not larger.is_inherited


@pytest.mark.parametrize("error", [InvalidArgumentError, NotConvergedError])
def test_where_a_kind_does_not_apply_members_inside_remain_and_the_reason_is_told(kind, error):
    def fail(*_, **__):
        raise error("too many parameters")

    kind(fail)
    bound = bound_ranges(ParameterBox(build, INTERVALS), INSIDE, horizon=10)
    assert (bound.value, bound.kind) == (INSIDE.value, INSIDE.kind)
    assert bound.reasons[-1] == "there is no stand-in bound of the ranges: too many parameters"


def test_the_largest_bound_of_any_branch_is_that_of_the_family(kind):
    """If one of several limits is reported, all of them must hold."""
    kind(stand_in(lambda box, _: 1.0 + float(box.nominal().B[0, 0]), confidence=0.99))
    family = ParameterBox(build, INTERVALS | {"sign": [-1, 1], "pole": (0.7, 0.7)})
    assert [box.names for box in boxes_of(family)] == [("gain",), ("gain",)]
    assert [float(box.nominal().B[0, 0]) for box in boxes_of(family)] == [-1.25, 1.25]
    assert all(float(box.nominal().A[0, 0]) == 0.7 for box in boxes_of(family))
    bound = bound_ranges(family, INSIDE, horizon=10)
    assert bound.value == 2.25
    np.testing.assert_allclose(bound.confidence, 0.98)


def test_of_many_branches_a_few_are_bounded():
    family = ParameterBox(build, INTERVALS | {"sign": [float(value) for value in range(1, 100)]})
    gains = [float(box.nominal().B[0, 0]) for box in boxes_of(family)]
    assert len(gains) == ranges.MAX_BRANCHES
    assert (gains[0], gains[-1]) == (1.25, 99 * 1.25)


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (ParameterBox(build, {"pole": [0.5, 0.9], "gain": (1.0, 1.0)}), "no parameter has an interval"),
        (Ball(lg.LQG(0.5 * np.eye(2), np.eye(2), np.eye(2)), radius=0.1, norm="spectral"), "does not fill"),
    ],
    ids=["choices", "ball"],
)
def test_ranges_that_are_no_box_have_the_bound_of_members_alone(kind, family, reason):
    kind(stand_in(lambda *_: 9.0))
    bound = bound_ranges(family, INSIDE, horizon=10)
    assert bound.value == INSIDE.value
    assert reason in bound.reasons[-1]


@pytest.mark.slow
def test_a_bound_of_the_ranges_is_at_least_that_of_the_corners_and_a_class_inherits_nothing(kind):
    family = lg.plants.mass_spring_damper()
    corners = minimax_lower_bound(family.grid(2), horizon=20)
    kind(stand_in(lambda *_: 5.0))
    of_ranges = minimax_lower_bound(family, horizon=20)
    assert isinstance(of_ranges, RangesBound)
    assert of_ranges.value == 5.0
    assert of_ranges.inside.value >= corners.value * (1 - 1e-9)
    proved = minimax_lower_bound(family, horizon=20, kinds=("two-point",))
    assert proved.kind == "two-point"
    assert set(proved.by_kind) == {"trivial", "two-point"}
    of_class = minimax_lower_bound(family.grid(2), horizon=20)
    assert (of_class.value, of_class.over) == (corners.value, "class")
    with pytest.raises(InvalidArgumentError, match="kinds is 'stand-in', expected one of"):
        minimax_lower_bound(family.grid(2), horizon=20, kinds=("stand-in",))


@pytest.mark.slow
def test_members_without_an_optimum_are_passed_over_and_counted():
    """No input moves a plant whose gain is zero, and its unstable pole runs away."""
    family = ParameterBox(build, {"pole": (2.0, 3.0), "gain": [0.0, 1.0, 2.0]})
    bound = minimax_lower_bound(family, horizon=1000, kinds=("two-point",), ends=False)
    assert bound.value > 0
    assert "have no optimal controller" in bound.reasons[-1]
    none = ParameterBox(build, {"pole": (2.0, 3.0), "gain": [0.0]})
    with pytest.raises(InvalidArgumentError, match="has an optimal controller"):
        minimax_lower_bound(none, horizon=1000, kinds=("two-point",), ends=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", lg.plants.FAMILIES)
def test_every_family_of_the_library_has_a_bound_of_its_ranges(name):
    bound = minimax_lower_bound(lg.plants.FAMILIES[name](), horizon=5, kinds=("two-point",))
    assert bound.value > 0
