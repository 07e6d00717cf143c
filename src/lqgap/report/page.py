"""The page: one HTML file that needs nothing else, and that a browser lets do nothing else.

Its content-security policy admits one style sheet and two scripts, by their hash, and no address at all;
texts of the record are escaped by Jinja in HTML and by `interactive.plain` in figures.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from lqgap.experiments.record import Record
from lqgap.files import write_if_changed
from lqgap.report import numbers
from lqgap.report.answer import answer
from lqgap.report.figure import Figure, Panel, Points, Rule, Span
from lqgap.report.gaps import bracket_bar, gap_against_horizon, gap_by_method, gap_by_plant
from lqgap.report.interactive import draw, plain
from lqgap.report.maps import gap_maps, name_of
from lqgap.report.palette import DARK, LIGHT, styles_of_methods
from lqgap.report.runs import adaptation_figures, trajectory_figures
from lqgap.report.training import training_curves

FOLDER = Path(__file__).parent
PAGE, FIGURES = "report.html", "figures"
WORDS = {  # for names in a record that only their authors understand
    "bayes": "what the best policy against a prior pays if the member is revealed after a step or two",
    "two-point": "two members take time to be told apart",
    "input-only": "two members differ in what the input does, and in nothing else",
    "nothing": "cost of doing nothing",
    "useful_from": "horizon from which the bound is useful",
}


def render(record: Record) -> str:
    """The page of a record; sections without data are left out."""
    sections = figures_by_section(record)
    figures = [figure for group in sections.values() for figure in group]
    panels = {
        panel_id(figure, index): draw(panel)
        for figure in figures
        for index, panel in enumerate(figure.panels)
    }
    style, scripts = _style(), (_read("plotly-basic.min.js"), _read("figures.js"))
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(script) for script in scripts)}; "
        f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return _template().render(
        record=record,
        answer=answer(record),
        sections=sections,
        panels=panels,
        styles=styles_of_methods(record),
        policy=policy,
        style=style,
        scripts=scripts,
    )


def write(record: Record, folder: Path, *, figures: bool = False) -> list[Path]:
    """Write `report.html` into the folder of a run and, if asked for, PNG and SVG of every figure."""
    page = folder / PAGE
    write_if_changed(page, render(record).encode())
    if not figures:
        return [page]
    from lqgap.report.static import write_figures  # loads matplotlib

    sections = figures_by_section(record).values()
    return [page, *write_figures((figure for group in sections for figure in group), folder / FIGURES)]


def figures_by_section(record: Record) -> dict[str, list[Figure]]:
    """All figures of a record by the section that they stand in."""
    gaps, runs, adaptations = record.gaps, record.trajectories or [], record.adaptations or []
    horizons = record.horizons.series if record.horizons else []
    sections = {
        "gaps": [gap_by_method(record, gaps)] if gaps and gaps.methods else [],
        "horizons": [gap_against_horizon(record, horizons)] if horizons else [],
        "bracket": [bracket_bar(record)],
        "maps": [gap_maps(record, record.heat_map)] if record.heat_map else [],
        "plants": [gap_by_plant(record, gaps)] if gaps and gaps.methods and record.real else [],
        "runs": trajectory_figures(record, runs),
        "adaptation": adaptation_figures(record, adaptations),
        "training": [training_curves(record)],
    }
    return {name: [figure for figure in group if figure] for name, group in sections.items()}


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
        "estimate": numbers.show_estimate,
        "seconds": numbers.show_seconds,
        "plotly_text": plain,
        "in_words": lambda name: WORDS.get(name, name),
        "name_of": name_of,
    }
    environment.filters.update(functions)
    environment.globals.update(panel_id=panel_id, series_of=series_of, describe_panel=describe_panel)
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
