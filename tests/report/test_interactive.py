import json
import re

import plotly.graph_objects as go
import pytest
from example_record import example_record

from lqgap.report.figure import Axis, Cells, Panel, Points, Rule, Span
from lqgap.report.interactive import draw, plain
from lqgap.report.page import figures_by_section
from lqgap.report.palette import LIGHT, Style

PANELS = [
    pytest.param(panel, id=f"{figure.name}-{index}")
    for group in figures_by_section(example_record()).values()
    for figure in group
    for index, panel in enumerate(figure.panels)
]
STYLE = Style("method-1", "circle")


def resolved(value):
    """Colours in place of their roles, as the page does it."""
    text = json.dumps(value, allow_nan=False)
    return json.loads(re.sub(r'"role:([a-z0-9-]+)"', lambda found: json.dumps(LIGHT[found[1]]), text))


@pytest.mark.parametrize("panel", PANELS)
def test_plotly_knows_every_property(panel):
    drawn = resolved(draw(panel))
    go.Figure(data=drawn["traces"], layout=drawn["layout"])


def test_markup_in_a_name_stays_text():
    assert plain('<a href="https://x">&amp;</a>\nb') == '&lt;a href="https://x"&gt;&amp;amp;&lt;/a&gt;<br>b'
    evil = "<b>bold</b>"
    series = Points(evil, STYLE, [1.0], [2.0], [evil])
    drawn = draw(Panel(evil, Axis(evil), Axis("", ticks=((0.0, evil),)), (series,)))
    assert "<b>" not in json.dumps(drawn)
    assert "&lt;b&gt;" in drawn["traces"][0]["hovertext"][0]


def test_an_interval_is_drawn_on_its_axis_and_ends_before_zero_on_a_logarithmic_one():
    series = Points("", STYLE, [1.0], [2.0], (), half_y=[3.0])
    linear, logarithmic = (draw(Panel("", Axis(""), Axis("", is_log), (series,))) for is_log in (False, True))
    assert linear["traces"][0]["error_y"]["arrayminus"] == [3]
    assert logarithmic["traces"][0]["error_y"]["arrayminus"] == [1.8]
    assert "error_x" not in linear["traces"][0]


def test_a_band_surrounds_its_line():
    series = Points("a", STYLE, [1.0, 2.0], [5.0, 6.0], (), half_y=[1.0, 2.0], kind="line", has_band=True)
    band, line = draw(Panel("", Axis(""), Axis(""), (series,)))["traces"]
    assert list(zip(band["x"], band["y"], strict=True)) == [(1, 6), (2, 8), (2, 4), (1, 4)]
    assert line["y"] == [5, 6]
    assert band["name"] == line["name"]


def test_cells_are_rectangles_between_their_edges_and_unknown_ones_are_left_out():
    cells = Cells([0.0, 1.0, 3.0], [0.0, 2.0], [[1.0, float("nan")]], [["a", "b"]], 1.0, 10.0, is_log=True)
    [bars] = draw(Panel("", Axis(""), Axis(""), (cells,)))["traces"]
    assert (bars["x"], bars["width"], bars["base"], bars["y"]) == ([0.5], [1], [0], [2])
    assert bars["marker"]["color"] == ["role:heat-0"]
    assert bars["hovertext"] == ["a"]


def test_a_rule_crosses_the_whole_panel():
    [line] = draw(Panel("", Axis("", is_log=True), Axis(""), (Rule("", "x", 100.0),)))["layout"]["shapes"]
    assert (line["x0"], line["x1"], line["y0"], line["y1"], line["yref"]) == (100, 100, 0, 1, "paper")


def test_a_span_starts_where_it_is_low():
    [bar] = draw(Panel("", Axis(""), Axis(""), (Span("", "neutral", 2.0, 5.0, 0.0, "hover"),)))["traces"]
    assert (bar["base"], bar["x"]) == ([2], [3])


def test_numbers_that_json_does_not_know_are_null():
    series = Points("", STYLE, [1.0], [float("inf")], ())
    assert draw(Panel("", Axis(""), Axis(""), (series,)))["traces"][0]["y"] == [None]
