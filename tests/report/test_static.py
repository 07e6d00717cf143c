import dataclasses
import xml.etree.ElementTree as ET

import pytest
from example_record import example_record

from lqgap.report.figure import ends
from lqgap.report.page import figures_by_section
from lqgap.report.palette import LIGHT
from lqgap.report.static import draw_static, write_figures

FIGURES = {
    figure.name: figure
    for group in figures_by_section(example_record(num_plants=3, horizon=5)).values()
    for figure in group
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_drawing_has_the_panels_and_the_series_of_its_figure(name):
    figure = FIGURES[name]
    drawing = draw_static(figure)
    panels = [axes for axes in drawing.axes if axes.get_label() != "<colorbar>"]
    assert [axes.get_xlabel() for axes in panels] == [panel.x.label for panel in figure.panels]
    assert [axes.get_xscale() == "log" for axes in panels] == [panel.x.is_log for panel in figure.panels]
    assert [axes.get_yscale() == "log" for axes in panels] == [panel.y.is_log for panel in figure.panels]
    [legend] = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [key.label for key in figure.legend]


def test_an_axis_ends_where_its_panel_says():
    [panel] = FIGURES["gap-against-horizon"].panels
    capped = dataclasses.replace(panel, y=dataclasses.replace(panel.y, high=50.0))
    figure = dataclasses.replace(FIGURES["gap-against-horizon"], panels=(capped,))
    assert draw_static(figure).axes[0].get_ylim() == pytest.approx(ends(capped, "y"))


def test_cells_have_the_colours_of_the_scale():
    figure = FIGURES["gap-map"]
    cells, patches = figure.panels[0].marks[0], draw_static(figure).axes[0].patches
    assert len(patches) == sum(len(row) for row in cells.values)
    smallest = min(range(len(patches)), key=[value for row in cells.values for value in row].__getitem__)
    assert (
        "#{:02x}{:02x}{:02x}".format(*(round(255 * c) for c in patches[smallest].get_facecolor()[:3]))
        == LIGHT["heat-0"]
    )


def test_every_figure_is_written_as_png_and_as_svg_and_twice_the_same(tmp_path):
    evil = dataclasses.replace(FIGURES["bracket"], title=r"$\frac{<script>$ & ../x")
    first, again = (write_figures([evil], tmp_path / name) for name in ("first", "again"))
    assert [path.name for path in first] == ["bracket.png", "bracket.svg"]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(first[1]).getroot().tag.endswith("svg")  # noqa: S314
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [
        "bracket.png",
        "bracket.png",
        "bracket.svg",
        "bracket.svg",
    ]
