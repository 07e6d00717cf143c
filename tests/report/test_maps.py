import math
from itertools import pairwise

import pytest
from example_record import example_record

from lqgap.report.figure import Cells, Points
from lqgap.report.maps import gap_maps


def test_every_method_has_its_panel_and_all_share_one_scale():
    record = example_record()
    figure = gap_maps(record, record.heat_map)
    assert [panel.title for panel in figure.panels] == [
        record.method(each.method).label + ("" if each.is_mean else " (nine in ten runs)")
        for each in record.heat_map.maps
    ]
    assert "no mean can be given" in figure.caption
    cells = [mark for panel in figure.panels for mark in panel.marks if isinstance(mark, Cells)]
    assert [each.values for each in cells] == [each.gap for each in record.heat_map.maps]
    assert len({(each.low, each.high, each.is_log) for each in cells}) == 1
    assert figure.panels[0].x.label == "stiffness (N/m)"


def test_cells_are_centred_on_their_values():
    record = example_record()
    cells = gap_maps(record, record.heat_map).panels[0].marks[0]
    for edges, values in (
        (cells.x_edges, record.heat_map.x_values),
        (cells.y_edges, record.heat_map.y_values),
    ):
        assert len(edges) == len(values) + 1
        middles = [(left + right) / 2 for left, right in pairwise(edges)]
        assert middles == pytest.approx(values)


def test_only_plants_with_both_parameters_are_on_the_map():
    record = example_record()
    [plants] = [
        mark
        for mark in gap_maps(record, record.heat_map).panels[0].marks
        if getattr(mark, "label", "") == "real plants"
    ]
    members = [plant for plant in record.real if plant.is_member]
    assert plants.x == [plant.parameters["stiffness"] for plant in members]
    assert plants.hover == [plant.name for plant in members]


def test_parameters_that_are_held_are_told_and_the_worst_of_all_is_not_drawn():
    record = example_record()
    figure = gap_maps(record, record.heat_map.model_copy(update={"held": {"mass": 2.0}}))
    assert "mass = 2.00" in figure.caption
    assert not [mark for mark in figure.panels[0].marks if isinstance(mark, Points) and "worst" in mark.label]


def test_a_single_value_fills_its_range():
    record = example_record()
    heat_map = record.heat_map.model_copy(
        update={
            "x_values": [2.0],
            "maps": [
                each.model_copy(update={"gap": [row[:1] for row in each.gap]})
                for each in record.heat_map.maps
            ],
            "optimal_cost": [row[:1] for row in record.heat_map.optimal_cost],
        }
    )
    assert gap_maps(record, heat_map).panels[0].marks[0].x_edges == [0.25, 3.75]


def test_colours_end_where_a_method_is_hopeless():
    record = example_record()
    maps = [
        each.model_copy(update={"gap": [[1e9] * len(row) for row in each.gap]})
        if each.method == "nominal"
        else each
        for each in record.heat_map.maps
    ]
    cells = gap_maps(record, record.heat_map.model_copy(update={"maps": maps})).scale
    [robust] = [each for each in maps if each.method == "robust"]
    assert cells.high == 5000 > 100 * max(max(row) for row in robust.gap)
    assert cells.is_capped
    assert cells.values[0][0] == 1e9


def test_rounding_where_the_plant_is_the_nominal_one_does_not_stretch_the_scale():
    record = example_record()
    first, *others = record.heat_map.maps
    rows = [list(row) for row in first.gap]
    rows[0][0] = 6e-28
    maps = [first.model_copy(update={"gap": rows}), *others]
    cells = gap_maps(record, record.heat_map.model_copy(update={"maps": maps})).scale
    assert cells.is_log
    assert 1e-7 < cells.low / cells.high < 1


def test_a_map_without_a_finite_gap_is_left_out():
    record = example_record()
    lost = [
        each.model_copy(update={"gap": [[math.inf] * len(row) for row in each.gap]})
        for each in record.heat_map.maps
    ]
    assert gap_maps(record, record.heat_map.model_copy(update={"maps": lost})) is None
