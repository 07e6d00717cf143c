"""The page: one HTML file that needs nothing else, and that a browser lets do nothing else.

Its content-security policy admits one style sheet and two scripts, by their hash, and no address at all;
texts of the record are escaped by Jinja in HTML and by `interactive.plain` in figures.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from lqgap.errors import LqgapError
from lqgap.experiments.record import BoundsSheet, Record
from lqgap.files import write_if_changed
from lqgap.report import numbers
from lqgap.report.answer import Answer, answer
from lqgap.report.figure import Figure, Panel, Points, Rule, Span
from lqgap.report.gaps import bracket_bar, gap_against_horizon, gap_by_method, gap_by_plant
from lqgap.report.interactive import draw, plain
from lqgap.report.maps import gap_maps, name_of
from lqgap.report.palette import DARK, LIGHT, styles_of_methods
from lqgap.report.responses import response_figures, response_table
from lqgap.report.runs import adaptation_figures, trajectory_figures
from lqgap.report.signals import show_margin, signal_rows
from lqgap.report.training import training_curves

FOLDER = Path(__file__).parent
PAGE, FIGURES = "report.html", "figures"
WORDS = {  # for names in a record that only their authors understand
    "bayes": "the cost of the best policy against a prior if the member is revealed after a step or two",
    "two-point": "two members that take time to tell apart",
    "input-only": "two members that differ in the effect of the input alone",
    "van-trees": "how slowly any controller learns the parameters, on average over a prior on the ranges "
    "(van Trees' inequality, and one control problem for each plant)",
    "nothing": "cost of zero input",
    "useful_from": "horizon from which the bound is useful",
}


@dataclass(frozen=True)
class Section:
    """A part of the page, which is left out if the record has nothing for it.

    Args:
        figures_fn: its figures; those that are None are left out.
        text_fn: what of the record it shows besides figures, by `sections/<name>.html`, if anything.
    """

    name: str
    title: str
    figures_fn: Callable[[Any], Sequence[Figure | None]] = lambda _: ()
    text_fn: Callable[[Any], Any] = lambda _: None

    @property
    def template(self) -> str:
        """What writes the section below its heading."""
        own = f"sections/{self.name}.html"
        return own if (FOLDER / own).exists() else "sections/figures.html"


SECTIONS = (
    Section(
        "gaps", "Gap by method", lambda r: [gap_by_method(r, r.gaps)] if r.gaps and r.gaps.methods else ()
    ),
    Section(
        "horizons",
        "Gap against the horizon",
        lambda r: [gap_against_horizon(r, r.horizons)] if r.horizons and r.horizons.series else (),
    ),
    Section(
        "bracket",
        "How much better could any controller be?",
        lambda r: [bracket_bar(r)],
        lambda r: r.bracket,
    ),
    Section("maps", "Gap over the family", lambda r: [gap_maps(r, r.heat_map)] if r.heat_map else ()),
    Section(
        "plants",
        "Every real plant",
        lambda r: [gap_by_plant(r, r.gaps)] if r.gaps and r.gaps.methods and r.real else (),
    ),
    Section("margins", "Margins", text_fn=lambda r: [each for each in r.methods if each.margins]),
    Section("responses", "Step responses", lambda r: response_figures(r, r.responses), response_table),
    Section("runs", "Runs on real plants", lambda r: trajectory_figures(r, r.trajectories or ())),
    Section("adaptation", "Adaptation", lambda r: adaptation_figures(r, r.adaptations or ())),
    Section("training", "Training", lambda r: [training_curves(r)]),
    Section("audit", "Audit of the family", text_fn=lambda r: r.audit),
    Section("bounds", "Bounds of the theory", text_fn=lambda r: r.bounds),
    Section("methods", "Methods", text_fn=lambda r: r.methods),
    Section("origin", "Where this comes from", text_fn=lambda _: True),
)


def render(record: Record) -> str:
    """The page of a record; sections without data are left out."""
    return assemble(record, answer(record), SECTIONS, subject="sim-to-real report")


def assemble(found: Any, lead: Answer, sections: Sequence[Section], *, subject: str) -> str:
    """A page of sections on anything that has a title, methods and warnings.

    Args:
        found: what sections show; templates know it as `record`.
        lead: the sentence on top.
    """
    figures = figures_of(found, sections)
    panels = {
        panel_id(figure, index): draw(panel)
        for group in figures.values()
        for figure in group
        for index, panel in enumerate(figure.panels)
    }
    shown = [
        {
            "name": each.name,
            "title": each.title,
            "template": each.template,
            "figures": figures[each.name],
            "text": text,
        }
        for each in sections
        if (text := each.text_fn(found)) or figures[each.name]
    ]
    style, scripts = _style(), (_read("plotly-basic.min.js"), _read("figures.js"))
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(script) for script in scripts)}; "
        f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return _template().render(
        record=found,
        subject=subject,
        answer=lead,
        sections=shown,
        panels=panels,
        styles=styles_of_methods(found),
        policy=policy,
        style=style,
        scripts=scripts,
    )


def write(record: Record, folder: Path, *, figures: bool = False) -> list[Path]:
    """Write `report.html` into the folder of a run and, if asked for, PNG and SVG of every figure."""
    page = folder / PAGE
    write_if_changed(page, render(record).encode())
    return [page, *(write_figures(record, folder) if figures else ())]


def write_figures(record: Record, folder: Path) -> list[Path]:
    """Write PNG and SVG of every figure into the folder of a run."""
    try:
        from lqgap.report.static import write_figures as write_each  # loads matplotlib
    except ImportError:
        raise LqgapError("PNG and SVG need matplotlib: pip install 'lqgap[figures]'") from None
    sections = figures_by_section(record).values()
    return write_each((figure for group in sections for figure in group), folder / FIGURES)


def figures_by_section(record: Record) -> dict[str, list[Figure]]:
    """All figures of a record by the section that they stand in."""
    return figures_of(record, SECTIONS)


def figures_of(found: Any, sections: Sequence[Section]) -> dict[str, list[Figure]]:
    """The same of any sections."""
    return {each.name: [figure for figure in each.figures_fn(found) if figure] for each in sections}


def panel_id(figure: Figure, index: int) -> str:
    """What ties a place on the page to the panel drawn there."""
    return f"{figure.name}-{index}"


def series_of(figure: Figure) -> set[str]:
    """Labels of what a reader can switch off."""
    return {mark.label for panel in figure.panels for mark in panel.marks if isinstance(mark, Points | Span)}


def describe_panel(figure: Figure, panel: Panel) -> str:
    """A panel in words, for those who do not see it."""
    labels = [mark.label for mark in panel.marks if isinstance(mark, Points | Rule | Span)]
    axes = " against ".join(axis.label for axis in (panel.y, panel.x) if axis.label)
    parts = (figure.title, panel.title, axes, ", ".join(dict.fromkeys(labels)))
    return ". ".join(part for part in parts if part)


def says_nothing(bounds: BoundsSheet) -> bool:
    """Whether the theory bounds neither regret nor gap in any of its forms."""
    rows = [row for row in bounds.rows if row.name in ("regret", "gap")]
    values = [value for row in rows for value in (row.printed, row.corrected, row.actual)]
    return bool(rows) and not any(value is not None and value < math.inf for value in values)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions: dict[str, Any] = {
        "show": numbers.show,
        "estimate": lambda estimate: numbers.show_estimate(estimate).replace(", ", ",\n"),
        "seconds": numbers.show_seconds,
        "plotly_text": plain,
        "in_words": lambda name: WORDS.get(name, name),
        "name_of": name_of,
        "over": numbers.show_over,
        "signal_rows": signal_rows,
    }
    environment.filters.update(functions)
    environment.globals.update(
        panel_id=panel_id,
        series_of=series_of,
        describe_panel=describe_panel,
        says_nothing=says_nothing,
        explain_ranges=numbers.explain_ranges,
        show_margin=show_margin,
    )
    return environment.get_template("template.html")


@cache
def _style() -> str:
    light, dark = (_variables(palette) for palette in (LIGHT, DARK))
    screen = f"@media screen and (prefers-color-scheme: dark) {{ :root:not(.paper) {{ {dark} }} }}"
    colours = "\n".join(f".is-{role} {{ color: var(--{role}); }}" for role in LIGHT)
    return f":root {{ {light} }}\n{screen}\n{colours}\n{_read('style.css')}"


def _variables(palette: dict[str, str]) -> str:
    return " ".join(f"--{role}: {colour};" for role, colour in palette.items())


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
