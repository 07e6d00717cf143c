"""Time and signals as a reader knows them: seconds where the time of a step is known, names and limits."""

import math
from collections.abc import Iterable
from typing import Literal

from lqgap.experiments.record import Margin, Record
from lqgap.report.figure import Axis, Rule
from lqgap.report.numbers import show

WORDS = {"u": "Input", "y": "Output"}


def time_axis(record: Record, *, of: str = "Step", is_log: bool = False) -> Axis:
    """The axis of steps, or of time.

    Args:
        of: what is counted in steps: "Step" itself, or "Horizon".
    """
    signals = record.signals
    if signals.dt is not None:
        return Axis(f"{'Time' if of == 'Step' else of} ({signals.time_unit})", is_log)
    return Axis(of if of == "Step" else f"{of} (steps)", is_log)


def times(record: Record, steps: Iterable[int]) -> list[float]:
    """Where steps stand on that axis."""
    return [step * (record.signals.dt or 1.0) for step in steps]


def show_steps(record: Record, steps: int) -> str:
    """A number of steps, and how long that is."""
    dt = record.signals.dt
    return (
        f"{steps} steps" if dt is None else f"{steps} steps ({show(steps * dt)} {record.signals.time_unit})"
    )


def show_margin(record: Record, margin: Margin) -> str:
    """A margin; a delay also as a time, where that of a step is known."""
    dt, value = record.signals.dt, show(margin.value)
    if margin.kind != "delay" or dt is None or not math.isfinite(margin.value):
        return value
    return f"{value} ({show(margin.value * dt)} {record.signals.time_unit})"


def name_signal(record: Record, kind: Literal["u", "y"], channel: int, count: int) -> str:
    """The name of an input or output, or its number if there are several."""
    names = record.signals.inputs if kind == "u" else record.signals.outputs
    if names:
        return names[channel]
    return WORDS[kind] if count == 1 else f"{WORDS[kind]} {channel + 1}"


def limit_rules(record: Record, kind: Literal["u", "y"], channel: int) -> tuple[Rule, ...]:
    """The limits of an input, as lines."""
    limits = record.signals.limits[channel] if kind == "u" and record.signals.limits else ()
    return tuple(Rule("limit", "y", limit, "neutral", is_faint=True) for limit in limits)


def explain_limits(record: Record) -> str:
    """How inputs are limited, in a sentence; empty if they are not."""
    signals = record.signals
    ranges = [f"from {low:g} to {high:g}" for low, high in signals.limits]
    rates = [f"changing by at most {rate:g} per {signals.time_unit}" for rate in signals.rate_limits]
    known = [list(each) for each in zip(*filter(None, (ranges, rates)), strict=True)]
    parts = [f"{name_signal(record, 'u', i, len(known))} {', '.join(each)}" for i, each in enumerate(known)]
    if not parts:
        return ""
    return f" Inputs are limited ({'; '.join(parts)}); gaps are measured from the optimum without limits."


def signal_rows(record: Record) -> list[list[str]]:
    """For a table: name, limits, rate and operating point of every signal of which something is known."""
    signals = record.signals
    inputs = max(map(len, (signals.inputs, signals.limits, signals.rate_limits, signals.u0)))
    outputs = max(map(len, (signals.outputs, signals.y0)))
    rows = []
    for i in range(inputs):
        low, high = signals.limits[i] if signals.limits else (None, None)
        rate, point = (values[i] if values else None for values in (signals.rate_limits, signals.u0))
        rows.append([name_signal(record, "u", i, inputs), *map(show, (low, high, rate, point))])
    for i in range(outputs):
        point = signals.y0[i] if signals.y0 else None
        rows.append([name_signal(record, "y", i, outputs), *map(show, (None, None, None, point))])
    return rows
