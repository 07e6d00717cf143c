"""Figures of gaps: by method, by real plant, against the horizon, and what brackets the best possible."""

import math
from collections.abc import Sequence

from lqgap.experiments.record import Estimate, Gaps, MethodGaps, Record, Series
from lqgap.report.figure import Axis, Figure, Key, Panel, Points, Rule, Span, wants_log
from lqgap.report.numbers import NUM_STDERR, show, show_estimate
from lqgap.report.palette import BOUND, Style, styles_of_methods

GAP = "Gap"

_MEASURES = {"mean": "mean over real plants", "worst": "worst real plant", "box": "worst found in the ranges"}
_SYMBOLS = {"mean": "circle", "worst": "diamond", "box": "square"}
_KEYS = {**_SYMBOLS, "box": "square-open"}
_EACH = "each real plant"


def gap_by_method(record: Record, gaps: Gaps) -> Figure:
    """A row for each method: every real plant, their mean and worst, and the worst found in the ranges."""
    shown = [each for each in gaps.methods if any(_is_shown(value, is_log=True) for value in _means(each))]
    is_log = wants_log(value for each in shown for value in _means(each))
    rows = shown if is_log else gaps.methods
    marks: list[Points | Rule] = []
    for place, each in enumerate(reversed(rows)):
        marks += _row(record, each, place, is_log=is_log)
    legend = [Key(_EACH, Style("neutral", "circle-small"))]
    legend += [Key(_MEASURES[key], Style("neutral", _KEYS[key])) for key in _measured(rows)]
    if record.bracket is not None and record.bracket.lower > 0 and record.bracket.horizon == gaps.horizon:
        marks.append(Rule("lower bound", "x", record.bracket.lower))
        legend.append(Key("no controller's worst gap is smaller", BOUND, is_line=True))
    ticks = tuple(
        (float(place), record.method(each.method).label) for place, each in enumerate(reversed(rows))
    )
    panel = Panel(
        "",
        Axis(f"{GAP} over {gaps.horizon} steps", is_log, starts_at_zero=not is_log),
        Axis("", ticks=ticks),
        tuple(marks),
        height=70 + 54 * len(rows),
    )
    undrawn = [_with_value(record, each) for each in gaps.methods if each not in rows]
    lost = [record.method(each.method).label for each in rows if math.inf in _means(each)]
    caption = (
        "Further left is better. A short row is a controller that treats all plants alike; "
        f"bars are ± {NUM_STDERR} standard errors of {gaps.num_rollouts} runs."
    )
    if undrawn:
        caption += f" Not on this logarithmic axis: {', '.join(undrawn)}."
    if lost:
        caption += f" Some gaps are infinite and not drawn: {', '.join(lost)}."
    return Figure("gap-by-method", "Gap by method", caption, (panel,), tuple(legend))


def gap_by_plant(record: Record, gaps: Gaps) -> Figure:
    """The gap on every real plant, from the easiest to the hardest for the first method."""
    styles = styles_of_methods(record)
    first = next((each for each in gaps.methods if each.method == record.recommended), gaps.methods[0])
    order = sorted(range(len(record.real)), key=lambda index: first.real[index].mean)
    sought = [each for each in gaps.methods if record.method(each.method).kind != "reference"]
    is_log = wants_log(each.real[index].mean for each in sought for index in order)
    marks = [
        _series(
            record.method(each.method).label,
            styles[each.method],
            [float(place) for place in range(1, len(order) + 1)],
            [each.real[index] for index in order],
            is_log=is_log,
            names=[record.real[index].name for index in order],
        )
        for each in sought
    ]
    ticks = tuple((place + 1.0, record.real[index].name) for place, index in enumerate(order))
    panel = Panel(
        "", Axis("", ticks=ticks), Axis(GAP, is_log, starts_at_zero=not is_log), tuple(marks), height=380
    )
    label = record.method(first.method).label
    caption = (
        f"Real plants from the easiest to the hardest for {label}; all methods meet the same noise. "
        "Where lines cross, the better choice depends on the plant."
    )
    legend = tuple(Key(mark.label, mark.style) for mark in marks)
    return Figure("gap-by-plant", "Gap on every real plant", caption, (panel,), legend)


def gap_against_horizon(record: Record, series: Sequence[Series]) -> Figure:
    """How gaps grow with the time that a controller runs, on logarithmic axes."""
    styles = styles_of_methods(record)
    marks = [
        _series(
            each.label,
            _series_style(each, styles),
            [float(h) for h in each.horizons],
            each.values,
            is_log=True,
        )
        for each in series
    ]
    panel = Panel("", Axis("Horizon (steps)", is_log=True), Axis(GAP, is_log=True), tuple(marks), height=440)
    caption = (
        "Both axes are logarithmic. A line that rises like the horizon itself pays again at every step; "
        "a line that flattens has learnt its plant and pays once."
    )
    if any(each.kind == "lower bound" for each in series):
        caption += " No controller whatever has a worst gap below the lower bound."
    legend = tuple(Key(mark.label, mark.style, is_line=True) for mark in marks)
    return Figure("gap-against-horizon", "Gap against the horizon", caption, (panel,), legend)


def bracket_bar(record: Record) -> Figure | None:
    """Where the best possible worst gap lies; None where nothing brackets it."""
    bracket = record.bracket
    if bracket is None or not math.isfinite(bracket.upper):
        return None
    style = styles_of_methods(record)[bracket.method]
    label = record.method(bracket.method).label
    low, high = show(bracket.lower), show(bracket.upper)
    half = NUM_STDERR * bracket.worst.stderr
    marks = (
        Span(
            "out of reach", "neutral", 0.0, max(bracket.lower, 0.0), 0.0, f"no controller: below {low}", True
        ),
        Span("bracket", style.colour, bracket.lower, bracket.upper, 0.0, f"best possible: {low} to {high}"),
        Points(
            label,
            Style("ink", style.symbol),
            [bracket.worst.mean],
            [0.0],
            [f"{label}: {show_estimate(bracket.worst)}"],
            half_x=[half],
            size=12,
            outline="background",
        ),
    )
    panel = Panel(
        "",
        Axis(f"Worst gap over {bracket.horizon} steps", starts_at_zero=True),
        Axis("", ticks=((0.0, ""),)),
        marks,
        height=130,
    )
    caption = (
        f"The smallest worst gap that any controller could have lies in the coloured part: not below {low}, "
        f"and not above what {label} achieves."
    )
    legend = (
        Key("out of reach of every controller", Style("neutral", "square")),
        Key("the best possible lies here", Style(style.colour, "square")),
        Key(f"worst gap of {label}", Style("ink", style.symbol)),
    )
    return Figure("bracket", "How much better could any controller be?", caption, (panel,), legend)


def _row(record: Record, each: MethodGaps, place: int, *, is_log: bool) -> list[Points]:
    style, label = styles_of_methods(record)[each.method], record.method(each.method).label
    plants = [
        (estimate, f"{label}\n{plant.name}: {show_estimate(estimate)}")
        for estimate, plant in zip(each.real, record.real, strict=True)
        if _is_shown(estimate.mean, is_log=is_log)
    ]
    marks = [
        Points(
            _EACH,
            Style(style.colour, "circle"),
            [estimate.mean for estimate, _ in plants],
            [float(place)] * len(plants),
            [hover for _, hover in plants],
            size=5,
            is_faint=True,
        )
    ]
    for key in _measured([each]):
        estimate = _measure(each, key)
        if estimate is not None and _is_shown(estimate.mean, is_log=is_log):
            hover = f"{label}\n{_MEASURES[key]}: {show_estimate(estimate)}"
            marks.append(
                Points(
                    _MEASURES[key],
                    Style(style.colour, _SYMBOLS[key]),
                    [estimate.mean],
                    [float(place)],
                    [hover],
                    half_x=[NUM_STDERR * estimate.stderr],
                    size=11,
                    is_open=key == "box",
                )
            )
    return marks


def _series(
    label: str,
    style: Style,
    x: Sequence[float],
    values: Sequence[Estimate],
    *,
    is_log: bool,
    names: Sequence[str] = (),
) -> Points:
    kept = [index for index, value in enumerate(values) if _is_shown(value.mean, is_log=is_log)]
    places = names or [f"horizon {each:.0f}" for each in x]
    return Points(
        label,
        style,
        [x[index] for index in kept],
        [values[index].mean for index in kept],
        [f"{label}\n{places[index]}: {show_estimate(values[index])}" for index in kept],
        half_y=[NUM_STDERR * values[index].stderr for index in kept],
        kind="line and points",
        size=8,
        width=1.0 if names else 2.0,
        has_band=not names,
    )


def _series_style(series: Series, styles: dict[str, Style]) -> Style:
    if series.method is None:
        return BOUND
    style = styles[series.method]
    return style if series.kind == "worst gap" else Style(style.colour, style.symbol, is_dashed=True)


def _measure(each: MethodGaps, key: str) -> Estimate | None:
    return {"mean": each.real_mean, "worst": each.real_worst, "box": each.box_worst}[key]


def _measured(methods: Sequence[MethodGaps]) -> list[str]:
    return [key for key in _MEASURES if any(_measure(each, key) is not None for each in methods)]


def _means(each: MethodGaps) -> list[float]:
    measures = [_measure(each, key) for key in _MEASURES]
    return [estimate.mean for estimate in [*measures, *each.real] if estimate is not None]


def _is_shown(value: float, *, is_log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not is_log)


def _with_value(record: Record, each: MethodGaps) -> str:
    return f"{record.method(each.method).label} ({show_estimate(each.real_worst)})"
