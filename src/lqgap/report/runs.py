"""Figures of what happened on real plants over time: runs of all methods, and adaptation."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from lqgap.experiments.record import Adaptation, Plant, Record, Trajectory
from lqgap.report.figure import Axis, Figure, Key, Panel, Points, Rule, wants_log
from lqgap.report.numbers import show
from lqgap.report.palette import Style, styles_of_methods
from lqgap.report.signals import explain_limits, limit_rules, name_signal, time_axis, times


def trajectory_figures(record: Record, trajectories: Sequence[Trajectory]) -> list[Figure]:
    """Accumulated cost, inputs and outputs of all methods, a figure for each real plant."""
    plants = [plant for plant in record.real if any(run.plant == plant.name for run in trajectories)]
    return [
        _runs_on(record, plant, [run for run in trajectories if run.plant == plant.name], index)
        for index, plant in enumerate(plants, start=1)
    ]


def adaptation_figures(record: Record, adaptations: Sequence[Adaptation]) -> list[Figure]:
    """Regret, surviving models and figures of the method's own over time, a figure for each run."""
    return [_adapting(record, each, index) for index, each in enumerate(adaptations, start=1)]


def describe_plant(plant: Plant) -> str:
    """The name of a real plant with its parameters."""
    values = ", ".join(f"{name} {show(value)}" for name, value in plant.parameters.items())
    return f"{plant.name} ({values})" if values else plant.name


def _runs_on(record: Record, plant: Plant, runs: Sequence[Trajectory], index: int) -> Figure:
    styles = styles_of_methods(record)
    runs = sorted(runs, key=lambda run: run.method == record.recommended)  # which is drawn on top
    panels = [_panel("Accumulated cost", [(run, list(accumulate(run.cost))) for run in runs], record, styles)]
    references = [method.name for method in record.methods if method.kind == "reference"]
    few = [run for run in runs if run.method in (record.recommended, *references)] or runs
    kinds: tuple[Literal["u", "y"], ...] = ("u", "y")
    for kind in kinds:
        channels = range(max((len(step) for run in few for step in getattr(run, kind)), default=0))
        for channel in channels:
            title = name_signal(record, kind, channel, len(channels))
            signals = [(run, [step[channel] for step in getattr(run, kind)]) for run in few]
            panels.append(_panel(title, signals, record, styles, limit_rules(record, kind, channel)))
    methods = [method for method in record.methods if any(run.method == method.name for run in runs)]
    shown = " and ".join(record.method(run.method).label for run in few)
    caption = (
        "One run of every method on the same noise. A steeper cost is a controller that does not suit "
        f"this plant. Inputs and outputs are those of {shown}.{explain_limits(record)}"
    )
    if not plant.is_member:
        caption += " This plant is outside the family, so no guarantee covers it."
    legend = tuple(Key(method.label, styles[method.name], is_line=True) for method in methods)
    return Figure(f"trajectory-{index}", describe_plant(plant), caption, tuple(panels), legend)


def _panel(
    title: str,
    signals: Sequence[tuple[Trajectory, list[float]]],
    record: Record,
    styles: dict[str, Style],
    rules: tuple[Rule, ...] = (),
) -> Panel:
    marks = tuple(
        Points(
            record.method(run.method).label,
            styles[run.method],
            times(record, range(len(signal))),
            signal,
            (),
            kind="line",
            width=1.5,
        )
        for run, signal in signals
    )
    return Panel("", time_axis(record), Axis(title), (*rules, *marks), height=280)


def _adapting(record: Record, run: Adaptation, index: int) -> Figure:
    method, plant = record.method(run.method), next(each for each in record.real if each.name == run.plant)
    style = styles_of_methods(record)[run.method]
    switches = tuple(
        Rule("switch", "x", time, "neutral", is_faint=True) for time in times(record, run.switches)
    )
    at, hover = times(record, run.times), _states(run)

    def panel(axis: Axis, values: Sequence[float], kind: Literal["line", "steps"]) -> Panel:
        return Panel(
            "",
            time_axis(record),
            axis,
            (*switches, Points(method.label, style, at, values, hover, kind=kind)),
        )

    panels = [panel(Axis("Regret"), run.regret, "line")]
    if run.set_size is not None:
        sizes = [float(size) for size in run.set_size]
        is_log = wants_log(sizes)
        axis = Axis("Models still possible", is_log, starts_at_zero=not is_log)
        panels.append(panel(axis, sizes, "steps"))
    for name, values in run.figures.items():
        is_log = min(values) > 0 and wants_log(values)
        panels.append(panel(Axis(name[:1].upper() + name[1:], is_log), values, "steps"))
    caption = (
        "Regret is the cost above the optimal average of this plant. It should flatten as the plant is known."
    )
    if run.model is not None:
        caption += f" Vertical lines: {len(run.switches)} changes of the model acted on."
    title, legend = f"{method.label} on {describe_plant(plant)}", (Key(method.label, style, is_line=True),)
    return Figure(f"adaptation-{index}", title, caption, tuple(panels), legend)


def _states(run: Adaptation) -> list[str]:
    """What the method believed at each of the times, for readers who point at it."""
    parts = [[f"step {time}" for time in run.times]]
    if run.set_size is not None:
        parts.append([f"{size} models left" for size in run.set_size])
    if run.model is not None:
        parts.append([f"acting on {model}" for model in run.model])
    return [", ".join(each) for each in zip(*parts, strict=True)]
