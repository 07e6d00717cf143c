"""Figures for the page: what plotly.js draws, as JSON.

Plotly reads tags and entities in texts, so every text is escaped. A colour is written "role:name"; the page
puts in what its style sheet says, anew when light turns to dark. Cells are drawn as bars, because the basic
bundle of plotly has no heat map.
"""

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from lqgap.report.figure import Axis, Cells, Panel, Points, Rule, Span, ends, extent, log_ticks, lower_halves
from lqgap.report.numbers import show
from lqgap.report.palette import shade

Json = dict[str, Any]

_MODES = {"points": "markers", "line": "lines", "steps": "lines", "line and points": "lines+markers"}
_WRAP = 18  # characters of a tick label in a line


def draw(panel: Panel) -> Json:
    """Traces and layout of a panel."""
    traces: list[Json] = []
    for mark in panel.marks:
        if isinstance(mark, Points):
            traces += [*_band(mark, panel), _points(mark, panel)]
        elif isinstance(mark, Cells):
            traces.append(_cells(mark))
        elif isinstance(mark, Span):
            traces.append(_span(mark))
    layout = {
        "height": panel.height,
        "xaxis": _axis(panel.x, panel, "x"),
        "yaxis": _axis(panel.y, panel, "y"),
        "shapes": [_rule(mark) for mark in panel.marks if isinstance(mark, Rule)],
        "barmode": "overlay",
        "bargap": 0,
    }
    return {"traces": traces, "layout": layout}


def plain(text: str) -> str:
    """A text that plotly shows as it is, lines apart."""
    return html.escape(text, quote=False).replace("\n", "<br>")


def _points(mark: Points, panel: Panel) -> Json:
    role = f"role:{mark.style.colour}"
    trace: Json = {
        "type": "scatter",
        "mode": _MODES[mark.kind],
        "name": plain(mark.label),
        "x": _numbers(mark.x),
        "y": _numbers(mark.y),
        "cliponaxis": False,
        "opacity": 0.45 if mark.is_faint else 1,
        "line": {
            "color": role,
            "width": mark.width,
            "dash": "dash" if mark.style.is_dashed else "solid",
            "shape": "hv" if mark.kind == "steps" else "linear",
        },
        "marker": {
            "color": role,
            "size": mark.size,
            "symbol": mark.style.symbol + ("-open" if mark.is_open else ""),
            "line": {"width": _rim(mark), "color": f"role:{mark.outline}" if mark.outline else role},
        },
        **_hover(mark.hover),
    }
    axes: tuple[Literal["x", "y"], ...] = ("x", "y")
    for axis in axes:
        halves = getattr(mark, f"half_{axis}")
        if halves and not mark.has_band and any(half > 0 for half in halves):
            trace[f"error_{axis}"] = {
                "type": "data",
                "symmetric": False,
                "array": _numbers(halves),
                "arrayminus": _numbers(lower_halves(mark, axis, getattr(panel, axis))),
                "color": role,
                "thickness": 1.5,
                "width": 0,
            }
    return trace


def _band(mark: Points, panel: Panel) -> list[Json]:
    if not (mark.has_band and any(half > 0 for half in mark.half_y)):
        return []
    lower = lower_halves(mark, "y", panel.y)
    above = [(x, y + half) for x, y, half in zip(mark.x, mark.y, mark.half_y, strict=True)]
    below = [(x, y - half) for x, y, half in zip(mark.x, mark.y, lower, strict=True)]
    outline = above + below[::-1]
    band = {
        "type": "scatter",
        "mode": "lines",
        "name": plain(mark.label),
        "x": _numbers(x for x, _ in outline),
        "y": _numbers(y for _, y in outline),
        "fill": "toself",
        "fillcolor": f"role:{mark.style.colour}",
        "line": {"width": 0},
        "opacity": 0.18,
        "hoverinfo": "skip",
    }
    return [band]


def _cells(mark: Cells) -> Json:
    columns = range(len(mark.x_edges) - 1)
    places = [(row, column) for row in range(len(mark.y_edges) - 1) for column in columns]
    places = [place for place in places if not math.isnan(mark.values[place[0]][place[1]])]
    shares = [mark.share(mark.values[row][column]) for row, column in places]
    return {
        "type": "bar",
        "x": _numbers((mark.x_edges[column] + mark.x_edges[column + 1]) / 2 for _, column in places),
        "width": _numbers(mark.x_edges[column + 1] - mark.x_edges[column] for _, column in places),
        "base": _numbers(mark.y_edges[row] for row, _ in places),
        "y": _numbers(mark.y_edges[row + 1] - mark.y_edges[row] for row, _ in places),
        "marker": {
            "color": [f"role:{shade(share)}" for share in shares],
            "line": {"width": 0},
        },
        **_hover([mark.hover[row][column] for row, column in places]),
    }


def _span(mark: Span) -> Json:
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(mark.label),
        "base": _numbers([mark.low]),
        "x": _numbers([mark.high - mark.low]),
        "y": [mark.y],
        "width": 0.5,
        "opacity": 0.35 if mark.is_faint else 0.8,
        "marker": {"color": f"role:{mark.colour}", "line": {"width": 0}},
        **_hover([mark.hover]),
    }


def _rule(mark: Rule) -> Json:
    other = "y" if mark.axis == "x" else "x"
    return {
        "type": "line",
        f"{mark.axis}0": mark.value,
        f"{mark.axis}1": mark.value,
        f"{other}ref": "paper",
        f"{other}0": 0,
        f"{other}1": 1,
        "opacity": 0.5 if mark.is_faint else 1,
        "line": {"color": f"role:{mark.colour}", "width": 1 if mark.is_faint else 1.5, "dash": "dash"},
    }


def _axis(axis: Axis, panel: Panel, which: Literal["x", "y"]) -> Json:
    has_cells = any(isinstance(mark, Cells) for mark in panel.marks)
    shown: Json = {
        "type": "log" if axis.is_log else "linear",
        "title": {"text": plain(axis.label) if which == "x" else ""},  # the page writes the one of y above
        "rangemode": "tozero" if axis.starts_at_zero else "normal",
        "showgrid": not has_cells and not any(not name for _, name in axis.ticks),
    }
    if axis.ticks:
        names = [plain("\n".join(textwrap.wrap(name, _WRAP)) or name) for _, name in axis.ticks]
        places = [place for place, _ in axis.ticks]
        shown |= {"tickvals": places, "ticktext": names, "range": [min(places) - 0.6, max(places) + 0.6]}
    elif axis.is_log:
        places = log_ticks(*extent(panel, which))
        shown |= {"tickvals": places, "ticktext": [show(place, digits=1) for place in places]}
    if (limits := ends(panel, which)) is not None:
        shown["range"] = _numbers(map(math.log10, limits) if axis.is_log else limits)
    if has_cells:
        [cells] = [mark for mark in panel.marks if isinstance(mark, Cells)]
        edges = getattr(cells, f"{which}_edges")
        shown["range"] = _numbers([edges[0], edges[-1]])
    return shown


def _rim(mark: Points) -> float:
    return 2.0 if mark.is_open or mark.style.symbol.startswith("line") else 1.5 if mark.outline else 0.0


def _hover(texts: Sequence[str]) -> Json:
    if not texts:
        return {"hoverinfo": "x+y+name"}
    return {"hoverinfo": "text", "hovertext": [plain(text) for text in texts]}


def _numbers(values: Iterable[float]) -> list[float | None]:
    """Numbers to six digits, which is more than a screen shows; JSON has no infinity."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]
