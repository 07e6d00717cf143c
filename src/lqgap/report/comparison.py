"""The page of a comparison of online methods: who pays how much until it has learned, and why.

Excess is what a run costs above the optimal controller of its plant; it is written per step as a share of J,

    rate = (excess(t) - excess(s)) / ((t - s) J)       between the steps s < t shown.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from lqgap.experiments.comparison import Cell, Comparison, equals
from lqgap.files import write_if_changed
from lqgap.report.answer import Answer, Fact
from lqgap.report.figure import FAR, Axis, Figure, Key, Panel, Points, scale_end
from lqgap.report.numbers import show, show_percent
from lqgap.report.page import Section, assemble
from lqgap.report.palette import Style, styles_of_methods

PAGE = "comparison.html"
FEW = 5  # seeds, with fewer of which intervals say little
MarksFn = Callable[[Cell, Style, str], list[Points]]
SETTLED, STEADY = 0.1, 0.35  # share of the excess in the second half of a run: 0.5 if nothing is learned


def render(found: Comparison) -> str:
    """The page."""
    return assemble(found, summarize(found), SECTIONS, subject="comparison")


def write(found: Comparison, folder: Path) -> Path:
    """Write the page into a folder."""
    page = folder / PAGE
    write_if_changed(page, render(found).encode())
    return page


def summarize(found: Comparison) -> Answer:
    """Who is best on most classes, over the longest horizon; of equals, who is first in most tables."""
    horizon = max(found.horizons)
    groups = [cells for family in found.families if (cells := found.at(family.name, horizon))]
    if not groups:
        return Answer("No method could be run on any class.", "", "")
    if len(groups) == 1 and (groups[0][0].num_diverged or groups[0][0].num_warming):
        return Answer(verdict(found, groups[0][0].family), "", "")
    wins = {method.name: [0, 0] for method in found.methods}
    for cells in groups:
        for place, cell in enumerate(equals(cells)):
            wins[cell.method][0] += 1
            wins[cell.method][1] += place == 0
    best = max(wins, key=lambda name: wins[name])
    where = f", or not clearly more than the best, on {wins[best][0]} of {len(groups)} classes"
    runs = [run for cells in groups for cell in cells for run in cell.runs]
    diverged = sum(run.diverged_at is not None for run in runs)
    return Answer(
        f"Over {horizon} steps ",
        found.contender(best).label,
        f" pays least{where if len(groups) > 1 else ' on the class'}.",
        (
            Fact("Methods", str(len(found.methods)), "on the same noise"),
            Fact("Runs", str(len(runs)), f"{len(found.seeds)} on each true plant"),
            Fact("Diverged", str(diverged), "not in the means"),
        ),
    )


def verdict(found: Comparison, family: str) -> str:
    """Who wins on a class, and why, in plain words."""
    cells = found.at(family, max(found.horizons))
    if not cells:
        return "No method could be run here."
    best, peers = cells[0], equals(cells)[1:]
    if best.num_diverged:
        return f"Every method diverged in some run; {_label(found, best)} did least often."
    if best.num_warming:
        return "No method did more than warm up in all runs: take a longer horizon."
    others = [cell for cell in cells if cell is not best and cell not in peers]
    held = [cell for cell in others if not cell.num_diverged and not cell.num_warming]
    ends = held[:1] + held[1:][-1:]  # who comes next, and who comes last
    return " ".join(
        [
            *([f"Too few seeds for a verdict, {best.num_seeds}."] if best.num_seeds < FEW else []),
            f"{_label(found, best)} pays least: {_value(best)}{_share(best)}. {_course(best)}",
            *([_ties(found, best, peers)] if peers else []),
            *(_behind(found, best, cell) for cell in ends),
            *(_failure(found, cell) for cell in others if cell.num_diverged or cell.num_warming),
        ]
    )


def growth_figure(found: Comparison) -> Figure:
    """How the excess grows with time, with intervals at every horizon."""

    def marks(cell: Cell, style: Style, label: str) -> list[Points]:
        line = [(float(t), y) for t, y in zip(cell.steps, cell.growth, strict=True) if y > 0]
        same = [each for each in found.cells if (each.family, each.method) == (cell.family, cell.method)]
        held = [each for each in same if each.mean > 0]
        return [
            Points(label, style, [x for x, _ in line], [y for _, y in line], (), kind="line", width=1.5),
            Points(
                label,
                style,
                [float(each.horizon) for each in held],
                [each.mean for each in held],
                [f"{label}: {_value(each)}" for each in held],
                half_y=[each.half for each in held],
                size=7,
            ),
        ]

    caption = (
        "Both axes are logarithmic. A line that flattens has learned its plant; one that rises like time "
        "pays again at every step. Bars are 95 % intervals of the mean over truths and seeds."
    )
    return _by_family(found, "growth", "Excess against time", "Excess", marks, caption)


def rate_figure(found: Comparison) -> Figure:
    """What a step costs above the optimum as time goes on."""

    def marks(cell: Cell, style: Style, label: str) -> list[Points]:
        grown = pairwise(zip(cell.steps, cell.growth, strict=True))
        rates = [
            (math.sqrt(max(s, 1) * t), (after - before) / ((t - s) * cell.optimum))
            for (s, before), (t, after) in grown
        ]
        rates = [(t, 100 * rate) for t, rate in rates if rate > 0]
        return [
            Points(label, style, [t for t, _ in rates], [r for _, r in rates], (), kind="line", width=1.5)
        ]

    caption = (
        "What a step costs above the optimal average cost of its plant, in per cent of that. A method that "
        "learns falls; one that stays level has stopped to."
    )
    return _by_family(found, "rate", "Cost per step against time", "Extra cost of a step, %", marks, caption)


def effort_figure(found: Comparison) -> Figure:
    """Switches of the model acted on, and the time that a step takes, a row for each method."""
    cells = [cell for cell in found.cells if cell.horizon == max(found.horizons)]
    panels = (
        _rows(found, "Switches in a run", {_key(cell): cell.switches for cell in cells}),
        _rows(found, "Microseconds a step", {_key(cell): 1e6 * cell.seconds_per_step for cell in cells}),
    )
    caption = (
        f"One mark for each class, over {max(found.horizons)} steps; methods that never switch have none on "
        "the left. Times are those of one run side by side with the others, on the machine that computed it."
    )
    return Figure("effort", "Switches and time", caption, panels)


SECTIONS = (
    Section(
        "verdicts",
        "Who wins, and why",
        text_fn=lambda found: {family.name: verdict(found, family.name) for family in found.families},
    ),
    Section("growth", "Excess against time", lambda found: [growth_figure(found)] if found.cells else ()),
    Section("rate", "Cost per step against time", lambda found: [rate_figure(found)] if found.cells else ()),
    Section("effort", "Switches and time", lambda found: [effort_figure(found)] if found.cells else ()),
    Section("contenders", "Methods", text_fn=lambda found: found.methods),
)


def _by_family(
    found: Comparison, name: str, title: str, axis: str, marks_fn: MarksFn, caption: str
) -> Figure:
    """A panel for each class with the cells of the longest horizon."""
    styles, panels = styles_of_methods(found), []
    for family in found.families:
        cells = found.at(family.name, max(found.horizons))
        marks = [m for cell in cells for m in marks_fn(cell, styles[cell.method], _label(found, cell))]
        marks = [mark for mark in marks if mark.x]
        if not marks:
            continue
        ends = {f"{place}": list(mark.y) for place, mark in enumerate(marks)}
        y = Axis(axis, is_log=True, high=scale_end(ends, None))
        panels.append(Panel(family.name, Axis("Step", is_log=True), y, tuple(marks), height=340))
    if any(panel.y.high for panel in panels):
        caption += f" What is {FAR} times above the least is off the scale."
    legend = tuple(Key(method.label, styles[method.name], is_line=True) for method in found.methods)
    return Figure(name, title, caption, tuple(panels), legend)


def _rows(found: Comparison, title: str, values: dict[tuple[str, str], float]) -> Panel:
    styles, marks = styles_of_methods(found), []
    names = [method.name for method in reversed(found.methods)]
    for place, name in enumerate(names):
        shown = [
            (family, value) for (family, method), value in values.items() if method == name and value > 0
        ]
        label = found.contender(name).label
        marks.append(
            Points(
                label,
                styles[name],
                [value for _, value in shown],
                [float(place)] * len(shown),
                [f"{label} on {family}: {show(value)}" for family, value in shown],
            )
        )
    ticks = tuple((float(place), found.contender(name).label) for place, name in enumerate(names))
    return Panel(
        title, Axis("", is_log=True), Axis("", ticks=ticks), tuple(marks), height=70 + 44 * len(names)
    )


def _course(cell: Cell) -> str:
    """Whether it is still paying at the end."""
    late = _late(cell)
    share = f"{show_percent(late, 1.0) if late > 0 else 'nothing'} of that in the second half of the time"
    if late <= SETTLED:
        return f"It pays {share}: it has learned."
    return f"It pays {share}: it {'does not learn more' if late >= STEADY else 'is still learning'}."


def _behind(found: Comparison, best: Cell, other: Cell) -> str:
    """How much more another one pays, and what for."""
    why = "learning costs it more"
    if _late(other) >= STEADY:
        why = "it learns little, and pays on at every step"
    elif _late(other) > max(SETTLED, _late(best)):
        why = "it takes longer to learn"
    return f"{_label(found, other)} clearly pays more, {_factor(best, other)}: {why}."


def _ties(found: Comparison, best: Cell, peers: list[Cell]) -> str:
    labels = ", ".join(f"{_label(found, cell)} ({_factor(best, cell)})" for cell in peers)
    return f"Not clearly worse on the same noise, with too few seeds to tell: {labels}."


def _factor(best: Cell, other: Cell) -> str:
    ratio = other.mean / best.mean if best.mean > 0 else math.inf
    return f"{100 * (ratio - 1):.0f} % more" if ratio < 1.5 else f"{show(ratio, digits=2)} times as much"


def _failure(found: Comparison, cell: Cell) -> str:
    """That a method diverged or did no more than warm up."""
    label, count = _label(found, cell), len(cell.runs)
    if cell.num_diverged:
        return f"{label} diverged in {cell.num_diverged} of {count} runs."
    return f"{label} did no more than warm up in {cell.num_warming} of {count} runs: its excess is no result."


def _late(cell: Cell) -> float:
    return 1 - cell.excess_by(cell.horizon // 2) / cell.mean if cell.mean > 0 else 0.0


def _label(found: Comparison, cell: Cell) -> str:
    return found.contender(cell.method).label


def _key(cell: Cell) -> tuple[str, str]:
    return cell.family, cell.method


def _value(cell: Cell) -> str:
    return f"{show(cell.mean)} ± {show(cell.half, digits=2)} over {cell.horizon} steps"


def _share(cell: Cell) -> str:
    share = show_percent(cell.mean, cell.optimum * (cell.horizon + 1))
    return f", {share} of the optimal cost" if share else ""
