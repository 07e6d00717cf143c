"""Figures of how a method answers steps of the set-point and of the load, over the family."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from lqgap.experiments.record import Record, Response
from lqgap.report.figure import Axis, Figure, Key, Panel, Points, Rule
from lqgap.report.numbers import show
from lqgap.report.palette import BOUND, styles_of_methods
from lqgap.report.signals import limit_rules, name_signal, time_axis, times

BASELINE = "nominal"  # which is shown beside the recommended method
FAR = 3.0  # times the largest step: beyond it a line leaves the picture


def response_figures(record: Record, responses: Sequence[Response]) -> list[Figure]:
    """Outputs and inputs of the recommended method and of the nominal one, a line for each plant."""
    found = {each.method: each for each in responses}
    names = [name for name in (record.recommended, BASELINE) if name in found] or list(found)[:1]
    return [_figure(record, found[name]) for name in dict.fromkeys(names) if name is not None]


def response_table(record: Record) -> dict[str, Any] | None:
    """Every figure of every method, with the plant where it is worst; and the methods that have none."""
    rows = [
        {
            "method": each.method,
            "label": record.method(each.method).label,
            "figures": [(_value(record, figure.kind, figure.value), figure.plant) for figure in each.figures],
        }
        for each in record.responses
    ]
    told = {row["method"] for row in rows}
    missing = [each.label for each in record.methods if each.name not in told and each.kind != "reference"]
    return {"rows": rows, "missing": missing} if rows else None


def _value(record: Record, kind: str, value: float) -> str:
    if kind != "settling":
        return f"{show(100 * value)} %"
    unit = record.signals.time_unit if record.signals.dt else "steps"
    return f"{show(times(record, [int(value)])[0])} {unit}" if math.isfinite(value) else "never"


def _figure(record: Record, response: Response) -> Figure:
    method = record.method(response.method)
    style, at = styles_of_methods(record)[method.name], times(record, response.steps)
    panels, num_gone = [], 0
    kinds: tuple[Literal["y", "u"], ...] = ("y", "u")
    for kind in kinds:
        signals, shape = getattr(response, kind), "line" if kind == "y" else "steps"  # inputs are held
        for channel in range(len(signals[0][0])):
            lines = [_inside(response, kind, channel, [now[channel] for now in plant]) for plant in signals]
            num_gone = max(num_gone, sum(len(line) < len(at) for line in lines))
            marks = [
                Points(method.label, style, at[: len(line)], line, [plant] * len(line), kind=shape, width=1.2)
                for plant, line in zip(response.plants, lines, strict=True)
            ]
            title = name_signal(record, kind, channel, len(signals[0][0]))
            rules: tuple[Points | Rule, ...] = limit_rules(record, kind, channel)
            if kind == "y" and channel in response.follow:
                wanted = [now[response.follow.index(channel)] for now in response.reference]
                rules = (Points("Set-point", BOUND, at, wanted, (), kind="steps", width=1.2),)
            panels.append(Panel("", time_axis(record), Axis(title), (*rules, *marks), height=280))
    legend = (Key(method.label, style, is_line=True), Key("Set-point", BOUND, is_line=True))
    gone = f" {num_gone} of {len(response.plants)} leave the picture." if num_gone else ""
    caption = f"A line for each of {len(response.plants)} plants, without noise.{gone}"
    return Figure(f"response-{response.method}", method.label, caption, tuple(panels), legend)


def _inside(response: Response, kind: str, channel: int, line: list[float]) -> list[float]:
    """A line as far as it stays in the picture."""
    if kind == "u" or channel not in response.follow:
        return line
    wanted = [now[response.follow.index(channel)] for now in response.reference]
    reach = FAR * abs(wanted[0] - wanted[-1])
    out = (index for index, value in enumerate(line) if not abs(value - wanted[-1]) <= reach)
    return line[: next(out, len(line))]
