"""A figure as a value, free of the library that draws it: panels of marks on a pair of axes.

Texts are plain: whoever draws must keep them from being read as markup. Colours are roles of the palette.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lqgap.report.palette import Style

LOG_RATIO = 30  # positive values that differ by more are shown on a logarithmic axis
FAR = 100  # what is this many times above the best is off the scale: how far does not matter any more


@dataclass(frozen=True)
class Axis:
    """What is measured along an axis; `ticks` names places of an axis without a scale."""

    label: str
    is_log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    starts_at_zero: bool = False
    high: float | None = None  # where the axis ends, if some values are beyond


@dataclass(frozen=True)
class Points:
    """A series; `half_x` and `half_y` are halves of intervals, drawn as a band if `has_band`.

    With `is_upward` they are ranges that begin at the values: there is nothing below.
    """

    label: str
    style: Style
    x: Sequence[float]
    y: Sequence[float]
    hover: Sequence[str]
    half_x: Sequence[float] = ()
    half_y: Sequence[float] = ()
    kind: Literal["points", "line", "line and points", "steps"] = "points"
    size: int = 8
    width: float = 2.0  # of the line
    outline: str | None = None  # colour of a rim that lifts a symbol off what is behind it
    is_open: bool = False
    is_faint: bool = False
    has_band: bool = False
    is_upward: bool = False


@dataclass(frozen=True)
class Span:
    """A horizontal bar from `low` to `high` at height `y`."""

    label: str
    colour: str
    low: float
    high: float
    y: float
    hover: str
    is_faint: bool = False


@dataclass(frozen=True)
class Rule:
    """A straight line across the panel at one value of an axis."""

    label: str
    axis: Literal["x", "y"]
    value: float
    colour: str = "ink"
    is_faint: bool = False


@dataclass(frozen=True)
class Cells:
    """Values over a grid of rectangles, row by row upwards, coloured from `low` to `high`."""

    x_edges: Sequence[float]
    y_edges: Sequence[float]
    values: Sequence[Sequence[float]]
    hover: Sequence[Sequence[str]]
    low: float
    high: float
    is_log: bool
    is_capped: bool = False  # some values are above `high`

    def share(self, value: float) -> float:
        """Where a value lies between `low` and `high`, from 0 to 1."""
        if self.high <= self.low:
            return 0.0
        value = min(max(value, self.low), self.high)
        if self.is_log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Panel:
    """One pair of axes; the label of y stands above it."""

    title: str
    x: Axis
    y: Axis
    marks: tuple[Points | Span | Rule | Cells, ...]
    height: int = 320  # in pixels


@dataclass(frozen=True)
class Key:
    """An entry of the legend."""

    label: str
    style: Style
    is_line: bool = False


@dataclass(frozen=True)
class Figure:
    """Panels with a legend and a caption that says what to see."""

    name: str  # of the file, too
    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: tuple[Key, ...] = ()
    scale: Cells | None = None  # whose colours need explaining

    @property
    def is_single(self) -> bool:
        """Whether one panel has the whole width."""
        return len(self.panels) == 1


def scale_end(values: Mapping[str, Sequence[float]], best: str | None) -> float | None:
    """Where a scale ends so that one hopeless method does not hide the others; None if none is hopeless.

    Args:
        values: by method.
        best: the method whose values must be seen well; None for the one whose largest value is smallest.
    """
    largest = {name: max(each, default=0.0) for name, each in values.items()}
    fine = {name: value for name, value in largest.items() if 0 < value < math.inf}
    if not fine:
        return None
    far = FAR * fine.get(best or "", min(fine.values()))
    if math.isinf(far):
        return None
    end = min((tick for tick in log_ticks(far, far) if tick >= far), default=far)
    return end if max(largest.values()) > end else None


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2 and 5 of each power of ten, or the powers alone if many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    heads = (1, 2, 5) if last - first <= 3 else (1,)
    every = max(1, (last - first) // 8)
    ticks = [head * 10.0 ** min(power, 308) for power in range(first, last + 1, every) for head in heads]
    return [tick for tick in ticks if tick < math.inf]


def extent(panel: Panel, which: Literal["x", "y"]) -> tuple[float, float]:
    """The smallest and the largest positive value that is drawn along an axis."""
    values: list[float] = []
    for mark in panel.marks:
        if isinstance(mark, Points):
            values += getattr(mark, which)
        elif isinstance(mark, Rule) and mark.axis == which:
            values.append(mark.value)
    high = getattr(panel, which).high or math.inf
    values = [min(value, high) for value in values if 0 < value < math.inf]
    return (min(values), max(values)) if values else (1.0, 10.0)


def ends(panel: Panel, which: Literal["x", "y"]) -> tuple[float, float] | None:
    """Where an axis begins and ends if some values are beyond; None if it covers them all."""
    axis: Axis = getattr(panel, which)
    if axis.high is None:
        return None
    return (extent(panel, which)[0] / 1.5 if axis.is_log else 0.0), axis.high


def lower_halves(mark: Points, which: Literal["x", "y"], axis: Axis) -> list[float]:
    """How far down intervals are drawn: on a logarithmic axis they end before zero."""
    if mark.is_upward:
        return [0.0] * len(mark.x)
    rows = zip(getattr(mark, which), getattr(mark, f"half_{which}"), strict=True)
    return [min(half, 0.9 * value) if axis.is_log else half for value, half in rows]


def wants_log(values: Iterable[float]) -> bool:
    """Whether these differ too much for a linear axis."""
    positive = [value for value in values if 0 < value < float("inf")]
    return bool(positive) and max(positive) > LOG_RATIO * min(positive)
