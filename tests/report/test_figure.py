from dataclasses import replace

import pytest

from lqgap.report.figure import (
    Axis,
    Cells,
    Panel,
    Points,
    Rule,
    ends,
    extent,
    log_ticks,
    lower_halves,
    scale_end,
    wants_log,
)
from lqgap.report.palette import Style


def test_a_logarithmic_axis_is_for_values_far_apart():
    assert wants_log([1.0, 31.0, -5.0, float("inf")])
    assert not wants_log([1.0, 29.0])
    assert not wants_log([0.0, -1.0])


def test_an_interval_ends_before_zero_on_a_logarithmic_axis():
    mark = Points("", Style("ink", "circle"), [2.0], [0.0], [], half_x=[5.0])
    assert lower_halves(mark, "x", Axis("", is_log=True)) == pytest.approx([1.8])
    assert lower_halves(mark, "x", Axis("")) == [5.0]
    assert lower_halves(replace(mark, is_upward=True), "x", Axis("")) == [0.0]


def test_a_scale_ends_before_what_is_hopeless():
    values = {"good": [1.0, 2.0], "fair": [30.0], "lost": [1e9, float("inf")], "perfect": [0.0]}
    assert scale_end(values, "good") == 200
    assert scale_end(values, "fair") == 5000
    assert scale_end(values, None) == 200
    assert scale_end({"good": [1.0], "fair": [30.0]}, "good") is None
    assert scale_end({"lost": [float("inf")]}, None) is None


def test_ticks_of_a_logarithmic_axis_are_round_and_cover_it():
    assert log_ticks(12.0, 180.0) == [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
    ticks = log_ticks(1e-3, 1e20)
    assert ticks[0] <= 1e-3
    assert len(ticks) <= 13


def test_the_extent_of_a_panel_is_that_of_its_positive_values():
    series = Points("", Style("ink", "circle"), [1.0, 50.0], [-2.0, 3.0], ())
    panel = Panel("", Axis(""), Axis(""), (series, Rule("", "x", 80.0)))
    assert extent(panel, "x") == (1.0, 80.0)
    assert extent(panel, "y") == (3.0, 3.0)


def test_an_axis_that_ends_early_begins_below_the_smallest_value():
    series = Points("", Style("ink", "circle"), [1.0, 2.0], [3.0, 1e30], ())
    linear, logarithmic, whole = (
        Panel("", Axis(""), axis, (series,))
        for axis in (Axis("", high=100.0), Axis("", is_log=True, high=100.0), Axis(""))
    )
    assert ends(linear, "y") == (0, 100)
    assert ends(logarithmic, "y") == (2, 100)
    assert ends(whole, "y") is None


@pytest.mark.parametrize("is_log", [False, True])
def test_a_share_runs_from_zero_to_one(is_log):
    cells = Cells([0.0, 1.0], [0.0, 1.0], [[1.0]], [[""]], 1.0, 100.0, is_log)
    assert [cells.share(value) for value in (0.0, 1.0, 100.0, float("inf"))] == [0, 0, 1, 1]
    assert cells.share(10.0) == pytest.approx(0.5 if is_log else 9 / 99)
    assert Cells([0.0, 1.0], [0.0, 1.0], [[1.0]], [[""]], 1.0, 1.0, is_log).share(1.0) == 0
