"""Figures of gaps: by method, by real plant, against the horizon, and what brackets the best possible."""

import math
from collections.abc import Mapping, Sequence

from lqgap.experiments.record import Estimate, Gaps, HorizonStudy, MethodGaps, Record, Series
from lqgap.report.figure import Axis, Figure, Key, Panel, Points, Rule, Span, scale_end, wants_log
from lqgap.report.numbers import half_width, is_range, show, show_estimate, show_over
from lqgap.report.palette import BOUND, Style, styles_of_methods
from lqgap.report.signals import show_steps, time_axis, times

GAP = "Gap"

_MEASURES = {"mean": "mean over real plants", "worst": "worst real plant", "box": "worst found in the ranges"}
_SYMBOLS = {"mean": "circle", "worst": "diamond", "box": "square"}
_KEYS = {**_SYMBOLS, "box": "square-open"}
_EACH = "each real plant"
_RANGE = Key(
    "from the median to nine in ten runs, where no mean can be given", Style("neutral", "circle-open")
)


def gap_by_method(record: Record, gaps: Gaps) -> Figure:
    """A row for each method: every real plant, their mean and worst, and the worst found in the ranges."""
    shown = [each for each in gaps.methods if any(_is_shown(value, is_log=True) for value in _places(each))]
    end = scale_end({each.method: _places(each) for each in gaps.methods}, record.recommended)
    is_log = wants_log(min(value, end or math.inf) for each in shown for value in _places(each))
    rows = shown if is_log else gaps.methods
    marks: list[Points | Rule] = []
    for place, each in enumerate(reversed(rows)):
        marks += _row(record, each, place, is_log=is_log, end=end)
    legend = [Key(_EACH, Style("neutral", "circle-small"))]
    legend += [Key(_MEASURES[key], Style("neutral", _KEYS[key])) for key in _measured(rows)]
    legend += [_RANGE] if any(is_range(each.real_worst) for each in rows) else []
    if record.bracket is not None and record.bracket.lower > 0 and record.bracket.horizon == gaps.horizon:
        marks.append(Rule("lower bound", "x", record.bracket.lower))
        where = show_over(record.bracket)
        legend.append(Key(f"no controller's worst gap over {where} is smaller", BOUND, is_line=True))
    ticks = tuple(
        (float(place), record.method(each.method).label) for place, each in enumerate(reversed(rows))
    )
    panel = Panel(
        "",
        Axis(
            f"{GAP} over {show_steps(record, gaps.horizon)}",
            is_log,
            starts_at_zero=not is_log,
            high=end and 1.3 * end,
        ),
        Axis("", ticks=ticks),
        tuple(marks),
        height=70 + 54 * len(rows),
    )
    has_bars = any(each.real_worst.has_interval and each.real_worst.stderr > 0 for each in rows)
    undrawn = [_with_value(record, each) for each in gaps.methods if each not in rows]
    caption = "Further left is better. A short row means similar gaps on all plants" + (
        f"; bars are 95 % intervals from {gaps.num_rollouts} runs." if has_bars else "."
    )
    if undrawn:
        caption += f" Not on this logarithmic axis: {', '.join(undrawn)}."
    caption += _beyond(record, {each.method: _places(each) for each in rows}, end, "Arrows are gaps")
    return Figure("gap-by-method", "Gap by method", caption, (panel,), tuple(legend))


def gap_by_plant(record: Record, gaps: Gaps) -> Figure:
    """The gap on every real plant, from the easiest to the hardest for the first method."""
    styles = styles_of_methods(record)
    first = next((each for each in gaps.methods if each.method == record.recommended), gaps.methods[0])
    order = sorted(range(len(record.real)), key=lambda index: _place(first.real[index]))
    sought = [each for each in gaps.methods if record.method(each.method).kind != "reference"]
    means = {each.method: [_place(estimate) for estimate in each.real] for each in sought}
    end = scale_end(means, record.recommended)
    is_log = wants_log(min(value, end or math.inf) for values in means.values() for value in values)
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
        "",
        Axis("", ticks=ticks),
        Axis(GAP, is_log, starts_at_zero=not is_log, high=end),
        tuple(marks),
        height=380,
    )
    label = record.method(first.method).label
    caption = (
        f"Real plants from the easiest to the hardest for {label}; all methods are evaluated on the same "
        "noise. Where lines cross, the better choice depends on the plant."
    )
    caption += _beyond(record, means, end, "Above the figure are gaps")
    legend = [Key(mark.label, mark.style) for mark in marks]
    legend += [_RANGE] if any(mark.is_upward for mark in marks) else []
    return Figure("gap-by-plant", "Gap on every real plant", caption, (panel,), tuple(legend))


def gap_against_horizon(record: Record, horizons: HorizonStudy) -> Figure:
    """How gaps grow with the time that a controller runs, on logarithmic axes."""
    series = horizons.series
    styles = styles_of_methods(record)
    marks = [
        _series(
            each.label,
            _series_style(each, styles),
            times(record, each.horizons),
            each.values,
            is_log=True,
        )
        for each in series
    ]
    means = {each.method: [_place(value) for value in each.values] for each in series if each.method}
    end = scale_end(means, record.recommended)
    y = Axis(GAP, is_log=True, high=end)
    panel = Panel("", time_axis(record, of="Horizon", is_log=True), y, tuple(marks), height=440)
    over = "in the ranges" if horizons.over == "ranges" else "over the simulators"
    found = f"found {over}" if horizons.over == "ranges" else over
    caption = (
        f"The largest gap {found}; both axes are logarithmic. A line that rises like the horizon itself pays "
        f"again at every step; a line that flattens has learnt its plant and pays once."
    )
    if any(each.kind == "lower bound" for each in series):
        caption += f" No controller that must learn its plant has a worst gap {over} below the lower bound."
    caption += _beyond(record, means, end, "Above the figure are gaps")
    legend = [Key(mark.label, mark.style, is_line=True) for mark in marks]
    legend += [_RANGE] if any(mark.is_upward for mark in marks) else []
    return Figure("gap-against-horizon", "Gap against the horizon", caption, (panel,), tuple(legend))


def bracket_bar(record: Record) -> Figure | None:
    """Where the best possible worst gap lies; None where nothing brackets it."""
    bracket = record.bracket
    if bracket is None or not math.isfinite(bracket.upper):
        return None
    style = styles_of_methods(record)[bracket.method]
    label = record.method(bracket.method).label
    low, high, where = show(bracket.lower), show(bracket.upper), show_over(bracket)
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
            half_x=[half_width(bracket.worst)],
            size=12,
            outline="background",
        ),
    )
    panel = Panel(
        "",
        Axis(f"Worst gap over {where}, {show_steps(record, bracket.horizon)}", starts_at_zero=True),
        Axis("", ticks=((0.0, ""),)),
        marks,
        height=130,
    )
    is_found = bracket.over == "ranges"
    found = " on the worst plant that a search found, if none is worse" if is_found else " on them"
    caption = (
        f"The smallest worst gap over {where} that any controller could have lies in the coloured part: not "
        f"below {low}, and not above what {label} achieves{found}."
    )
    legend = (
        Key("out of reach of every controller", Style("neutral", "square")),
        Key("the best possible lies here", Style(style.colour, "square")),
        Key(f"worst gap of {label}", Style("ink", style.symbol)),
    )
    return Figure("bracket", "How much better could any controller be?", caption, (panel,), legend)


def _row(record: Record, each: MethodGaps, place: int, *, is_log: bool, end: float | None) -> list[Points]:
    style, label = styles_of_methods(record)[each.method], record.method(each.method).label
    measured = [(_measure(each, key), _MEASURES[key], _SYMBOLS[key], 11) for key in _MEASURES]
    plants = zip(each.real, record.real, strict=True)
    drawn = [*((estimate, plant.name, "circle", 5) for estimate, plant in plants), *measured]
    marks = []
    for estimate, what, symbol, size in drawn:
        if estimate is None or not _is_shown(_place(estimate), is_log=is_log):
            continue
        is_beyond = end is not None and _place(estimate) > end
        marks.append(
            Points(
                what if size > 5 else _EACH,
                Style(style.colour, "triangle-right" if is_beyond else symbol),
                [end if is_beyond and end is not None else _place(estimate)],
                [float(place)],
                [f"{label}\n{what}: {show_estimate(estimate, in_words=True)}"],
                half_x=[0.0 if is_beyond else _reach(estimate)] if size > 5 else (),
                size=size,
                is_open=(symbol == "square" or is_range(estimate)) and not is_beyond,
                is_faint=size == 5,
                is_upward=is_range(estimate),
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
    has_ranges = any(map(is_range, values))
    if has_ranges:  # medians in a line with means would be compared
        values = [value.model_copy(update={"low": None, "high": None}) for value in values]
    kept = [index for index, value in enumerate(values) if _is_shown(_place(value), is_log=is_log)]
    places = names or [f"horizon {each:.0f}" for each in x]
    return Points(
        label,
        style,
        [x[index] for index in kept],
        [_place(values[index]) for index in kept],
        [f"{label}\n{places[index]}: {show_estimate(values[index], in_words=True)}" for index in kept],
        half_y=[_reach(values[index]) for index in kept],
        kind="line and points",
        size=8,
        width=1.0 if names else 2.0,
        has_band=not names,
        is_open=has_ranges,
        is_upward=has_ranges,
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


def _places(each: MethodGaps) -> list[float]:
    measures = [_measure(each, key) for key in _MEASURES]
    return [_place(estimate) for estimate in [*measures, *each.real] if estimate is not None]


def _place(estimate: Estimate) -> float:
    """Where an estimate is drawn: at its mean, or the median of runs where no mean can be given."""
    return estimate.median if is_range(estimate) and estimate.median is not None else estimate.mean


def _reach(estimate: Estimate) -> float:
    """How far the bar of an estimate goes."""
    if not is_range(estimate):
        return half_width(estimate)
    reach = (estimate.most or 0.0) - _place(estimate)
    return reach if math.isfinite(reach) else 0.0


def _is_shown(value: float, *, is_log: bool) -> bool:
    return not math.isnan(value) and (value > 0 or not is_log)


def _beyond(record: Record, values: Mapping[str, Sequence[float]], end: float | None, words: str) -> str:
    names = [record.method(name).label for name, each in values.items() if end and max(each) > end]
    return f" {words} beyond {show(end)}: {', '.join(names)}." if names else ""


def _with_value(record: Record, each: MethodGaps) -> str:
    return f"{record.method(each.method).label} ({show_estimate(each.real_worst)})"
