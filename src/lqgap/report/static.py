"""The same figures for papers and slides: PNG and SVG, drawn by matplotlib in the light colours.

Texts are never read as mathematics, so a name with dollar signs stays a name.
"""

import io
import math
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.figure
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from lqgap.files import write_bytes
from lqgap.report.figure import (
    Axis,
    Cells,
    Figure,
    Key,
    Panel,
    Points,
    Rule,
    Span,
    ends,
    extent,
    log_ticks,
    lower_halves,
)
from lqgap.report.numbers import show
from lqgap.report.palette import LIGHT, NUM_SHADES, shade

FORMATS = ("png", "svg")

_MARKERS = {
    "circle": "o",
    "circle-open": "o",
    "circle-small": ".",
    "square": "s",
    "square-open": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "pentagon": "p",
    "star": "*",
    "x": "X",
    "triangle-right": ">",
    "line-ew": "",
}
_SETTINGS: dict[Any, Any] = {
    "text.parse_math": False,
    "font.size": 9,
    "font.family": "sans-serif",
    "svg.hashsalt": "lqgap",  # the same figure is the same file
    "text.color": LIGHT["ink"],
    "axes.edgecolor": LIGHT["rule"],
    "axes.labelcolor": LIGHT["muted"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LIGHT["rule"],
    "grid.linewidth": 0.6,
    "xtick.color": LIGHT["rule"],
    "ytick.color": LIGHT["rule"],
    "xtick.labelcolor": LIGHT["muted"],
    "ytick.labelcolor": LIGHT["muted"],
}
_PIXELS = 90  # of the page, in an inch


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write every figure in all formats; the files are named after the figures."""
    written = []
    for figure in figures:
        with mpl.rc_context(_SETTINGS):
            drawing = draw_static(figure)
            for kind in FORMATS:
                path = folder / f"{figure.name}.{kind}"
                metadata = {"Date": None} if kind == "svg" else {"Software": None}
                content = io.BytesIO()
                drawing.savefig(content, format=kind, dpi=200, metadata=metadata)
                write_bytes(path, content.getvalue())
                written.append(path)
    return written


def draw_static(figure: Figure) -> matplotlib.figure.Figure:
    """One figure with its legend and title."""
    columns = min(len(figure.panels), 3)
    rows = math.ceil(len(figure.panels) / columns)
    size = (
        8.0 if columns == 1 else 3.6 * columns,
        rows * max(p.height for p in figure.panels) / _PIXELS + 0.8,
    )
    drawing = matplotlib.figure.Figure(figsize=size, layout="constrained")
    drawing.suptitle(figure.title, x=0.01, ha="left", fontweight="bold", fontsize=10)
    grid = drawing.subplots(rows, columns, squeeze=False).flat
    for axes, panel in zip(grid, figure.panels, strict=False):
        _draw(axes, panel)
    for axes in list(grid)[len(figure.panels) :]:
        axes.remove()
    if figure.legend:
        handles = [_handle(key) for key in figure.legend]
        drawing.legend(
            handles=handles, loc="outside lower left", ncols=min(3, len(handles)), frameon=False, fontsize=8
        )
    if figure.scale is not None:
        _explain(drawing, figure.scale)
    return drawing


def _draw(axes: Axes, panel: Panel) -> None:
    _scale(axes, panel, "x")
    _scale(axes, panel, "y")
    for mark in panel.marks:
        if isinstance(mark, Points):
            _points(axes, mark, panel)
        elif isinstance(mark, Cells):
            _cells(axes, mark)
        elif isinstance(mark, Span):
            look = {"color": LIGHT[mark.colour], "alpha": 0.35 if mark.is_faint else 0.8}
            axes.barh(mark.y, mark.high - mark.low, left=mark.low, height=0.5, **look)
        else:
            _rule(axes, mark)
    title = " · ".join(text for text in (panel.title, panel.y.label) if text)
    axes.set_title(title, loc="left", fontsize=9, color=LIGHT["muted"])
    axes.set_xlabel(panel.x.label)
    axes.set_xlim(*(ends(panel, "x") or (0.0 if panel.x.starts_at_zero else None, None)))
    axes.set_ylim(*(ends(panel, "y") or (0.0 if panel.y.starts_at_zero else None, None)))


def _scale(axes: Axes, panel: Panel, which: Literal["x", "y"]) -> None:
    axis, along = getattr(panel, which), getattr(axes, f"{which}axis")
    if axis.ticks:
        places = [place for place, _ in axis.ticks]
        names = ["\n".join(textwrap.wrap(name, 18)) for _, name in axis.ticks]
        is_crowded = which == "x" and len(places) > 5
        along.set_ticks(places, names, rotation=90 if is_crowded else 0)
        along.grid(visible=any(names))
        axes.set(**{f"{which}lim": (min(places) - 0.6, max(places) + 0.6)})
    if axis.is_log:
        axes.set(**{f"{which}scale": "log"})
        places = log_ticks(*extent(panel, which))
        along.set_ticks(places, [show(place, digits=1) for place in places])
        along.set_minor_locator(NullLocator())


def _points(axes: Axes, mark: Points, panel: Panel) -> None:
    colour, alpha = LIGHT[mark.style.colour], 0.45 if mark.is_faint else 1.0
    line = "" if mark.kind == "points" else "-"
    if mark.has_band:
        low = [y - half for y, half in zip(mark.y, lower_halves(mark, "y", panel.y), strict=True)]
        high = [y + half for y, half in zip(mark.y, mark.half_y, strict=True)]
        axes.fill_between(mark.x, low, high, color=colour, alpha=0.18, linewidth=0)
    has_symbols = mark.kind in ("points", "line and points")
    drawn: ErrorbarContainer = axes.errorbar(
        mark.x,
        mark.y,
        xerr=_errors(mark, "x", panel.x),
        yerr=None if mark.has_band else _errors(mark, "y", panel.y),
        linestyle=(0, (4, 3)) if line and mark.style.is_dashed else line or "none",
        linewidth=0.75 * mark.width,
        elinewidth=1.2,
        marker=_MARKERS[mark.style.symbol] if has_symbols else "",
        markersize=0.65 * mark.size,
        markerfacecolor="none" if mark.is_open else colour,
        markeredgecolor=LIGHT[mark.outline] if mark.outline else colour,
        color=colour,
        alpha=alpha,
        clip_on=panel.x.high is not None or panel.y.high is not None,
    )
    if mark.kind == "steps" and isinstance(drawn.lines[0], Line2D):
        drawn.lines[0].set_drawstyle("steps-post")


def _errors(mark: Points, which: Literal["x", "y"], axis: Axis) -> list[list[float]] | None:
    halves = list(mark.half_x if which == "x" else mark.half_y)
    return [lower_halves(mark, which, axis), halves] if any(half > 0 for half in halves) else None


def _cells(axes: Axes, mark: Cells) -> None:
    axes.grid(visible=False)
    for row, values in enumerate(mark.values):
        for column, value in enumerate(values):
            if not math.isnan(value):
                left, right = mark.x_edges[column : column + 2]
                low, high = mark.y_edges[row : row + 2]
                colour = LIGHT[shade(mark.share(value))]
                axes.add_patch(Rectangle((left, low), right - left, high - low, color=colour, linewidth=0.2))
    axes.set_xlim(mark.x_edges[0], mark.x_edges[-1])
    axes.set_ylim(mark.y_edges[0], mark.y_edges[-1])


def _rule(axes: Axes, mark: Rule) -> None:
    line = axes.axvline if mark.axis == "x" else axes.axhline
    line(mark.value, color=LIGHT[mark.colour], linewidth=1, linestyle="--", alpha=0.5 if mark.is_faint else 1)


def _handle(key: Key) -> Line2D:
    colour, symbol = LIGHT[key.style.colour], key.style.symbol
    return Line2D(
        [],
        [],
        color=colour,
        marker=_MARKERS[symbol],
        markersize=5,
        markerfacecolor="none" if symbol.endswith("-open") else colour,
        linestyle=("--" if key.style.is_dashed else "-") if key.is_line else "none",
        label=key.label,
    )


def _explain(drawing: matplotlib.figure.Figure, cells: Cells) -> None:
    colours = [LIGHT[f"heat-{step}"] for step in range(NUM_SHADES)]
    scale = LogNorm if cells.is_log else Normalize
    mappable = ScalarMappable(scale(cells.low, cells.high), ListedColormap(colours))
    middle = (cells.low + cells.high) / 2
    ticks = log_ticks(cells.low, cells.high) if cells.is_log else [cells.low, middle, cells.high]
    ticks = [tick for tick in ticks if cells.low <= tick <= cells.high]
    bar = drawing.colorbar(mappable, ax=drawing.axes, label="gap", shrink=0.8)
    bar.set_ticks(ticks, labels=[show(tick, digits=1 if cells.is_log else 3) for tick in ticks])
    bar.minorticks_off()
    bar.outline.set_visible(False)
