"""The gap over two parameters of the family, a panel for each method, all with one scale of colours."""

import math
from collections.abc import Sequence
from itertools import pairwise

from lqgap.experiments.record import GapMap, HeatMap, Parameter, Record
from lqgap.report.figure import Axis, Cells, Figure, Key, Panel, Points, scale_end, wants_log
from lqgap.report.numbers import show
from lqgap.report.palette import Style

LEAST = 1e-6  # of the largest gap: where a plant is the nominal one, its gap is zero or rounding


def gap_maps(record: Record, heat_map: HeatMap) -> Figure | None:
    """The maps of all methods; None where no gap is finite."""
    gaps = [gap for each in heat_map.maps for row in each.gap for gap in row if math.isfinite(gap)]
    if not gaps:
        return None
    is_log = wants_log(gaps)
    low = min(gap for gap in gaps if gap > 0 or not is_log)
    by_method = {each.method: [gap for row in each.gap for gap in row] for each in heat_map.maps}
    end = scale_end(by_method, record.recommended)
    low = max(low, LEAST * (end or max(gaps))) if is_log else low
    plants = _plants(record, heat_map)
    panels = []
    for each in heat_map.maps:
        cells = Cells(
            _edges(heat_map.x_values, heat_map.x),
            _edges(heat_map.y_values, heat_map.y),
            each.gap,
            _hover(heat_map, each),
            low,
            end or max(gaps),
            is_log,
            is_capped=end is not None,
        )
        marks = (cells, *plants, *_worst(record, heat_map, each.method))
        label = record.method(each.method).label + ("" if each.is_mean else _AT_MOST)
        panels.append(Panel(label, Axis(name_of(heat_map.x)), Axis(name_of(heat_map.y)), marks, height=330))
    caption = (
        "All panels share one scale. A good controller has small gaps everywhere, not in one corner alone."
    )
    if not all(each.is_mean for each in heat_map.maps):
        caption += (
            " Where no mean can be given, colours are the extra cost that nine in ten runs do not exceed."
        )
    if heat_map.held:
        held = ", ".join(f"{name} = {show(value)}" for name, value in heat_map.held.items())
        caption += f" Held fixed: {held}."
    legend = [Key("real plants", Style("ink", "circle-open"))] if plants else []
    if any(isinstance(mark, Points) and mark.label == _WORST for panel in panels for mark in panel.marks):
        legend.append(Key(_WORST, Style("ink", "x")))
    return Figure("gap-map", "Gap over the family", caption, tuple(panels), tuple(legend), panels[0].marks[0])


def name_of(parameter: Parameter) -> str:
    """A parameter with its unit."""
    return f"{parameter.name} ({parameter.unit})" if parameter.unit else parameter.name


_WORST = "worst found in the ranges"
_AT_MOST = " (nine in ten runs)"


def _edges(centres: Sequence[float], parameter: Parameter) -> list[float]:
    if len(centres) == 1:
        half = (parameter.high - parameter.low) / 2 or 0.5
        return [centres[0] - half, centres[0] + half]
    middles = [(left + right) / 2 for left, right in pairwise(centres)]
    return [2 * centres[0] - middles[0], *middles, 2 * centres[-1] - middles[-1]]


def _hover(heat_map: HeatMap, each: GapMap) -> list[list[str]]:
    return [
        [
            f"{heat_map.x.name} {show(x)}, {heat_map.y.name} {show(y)}\n"
            f"{'gap' if each.is_mean else '9 in 10 below'} {show(gap)}, optimal cost {show(optimal)}"
            for x, gap, optimal in zip(heat_map.x_values, row, costs, strict=True)
        ]
        for y, row, costs in zip(heat_map.y_values, each.gap, heat_map.optimal_cost, strict=True)
    ]


def _plants(record: Record, heat_map: HeatMap) -> list[Points]:
    names = (heat_map.x.name, heat_map.y.name)
    plants = [plant for plant in record.real if set(names) <= set(plant.parameters) and plant.is_member]
    if not plants:
        return []
    x, y = ([plant.parameters[name] for plant in plants] for name in names)
    hover = [plant.name for plant in plants]
    return [Points("real plants", Style("background", "circle"), x, y, hover, size=7, outline="ink")]


def _worst(record: Record, heat_map: HeatMap, method: str) -> list[Points]:
    if record.gaps is None or heat_map.held:
        return []
    gaps = next((gaps for gaps in record.gaps.methods if gaps.method == method), None)
    if gaps is None or gaps.box_worst_at is None:
        return []
    x, y = (gaps.box_worst_at.get(name) for name in (heat_map.x.name, heat_map.y.name))
    if x is None or y is None:
        return []
    return [Points(_WORST, Style("ink", "x"), [x], [y], [_WORST], size=10, outline="background")]
