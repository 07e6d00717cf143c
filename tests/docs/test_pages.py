"""What the pages say a user may type, works: every block of Python that `make docs` does not run itself."""

import ast
import re
from pathlib import Path

import jax
import numpy as np
import pytest
import typer

import lqgap as lg
from lqgap.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^(`{3,})(\{?[\w-]+\}?)[^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
RUN_ELSEWHERE = {"overview.md", "examples.md"}  # tests/test_readme.py, tests/docs/test_reference.py
LINK = re.compile(r"\]\(([^)#\s]+\.(?:md|py))(?:#[\w-]+)?\)")


class UnpluggedError(Exception):
    """The plant of a loop that would never end."""


class Plant:
    """What a loop reads and writes, a few times."""

    def __init__(self, steps):
        self.steps, self.inputs = steps, []

    def read(self):
        if len(self.inputs) == self.steps:
            raise UnpluggedError
        return [0.1]

    def write(self, u):
        self.inputs.append(u)


def blocks(page, kind):
    return [code for _, language, code in FENCE.findall(page.read_text()) if language == kind]


def scene():
    """The names that loop.md takes as given."""
    family = lg.ParameterBox(lambda lag: lg.LQG([[lag]], [[1 - lag]], [[1.0]]), {"lag": (0.7, 0.9)})
    policy = lg.policies.StationaryLQG(family.nominal())
    return {"lg": lg, "family": family, "policy": policy, "plant": Plant(3), "r": 1.0}


def pages_with(kind):
    pages = [page for page in PAGES if page.name not in RUN_ELSEWHERE and blocks(page, kind)]
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT / "docs")))


@pages_with("python")
def test_the_python_of_a_page_runs(page):
    names = scene()
    with jax.numpy_rank_promotion("allow"):
        for code in blocks(page, "python"):
            try:
                exec(code, names)  # noqa: S102
            except UnpluggedError:
                assert len(names["plant"].inputs) == names["plant"].steps
                assert np.all(np.isfinite(names["plant"].inputs))


@pages_with("{code-cell}")
def test_a_page_whose_cells_run_is_a_notebook(page):
    assert page.read_text().startswith("---\nfile_format: mystnb\n"), "else they are shown and not run"
    for code in blocks(page, "{code-cell}"):
        ast.parse(re.sub(r"^:tags:.*\n", "", code))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_links_of_a_page_lead_to_pages(page):
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_example_is_in_the_gallery():
    shown = re.findall(r'^run\("(\w+)"\)$', (ROOT / "docs" / "gallery.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


# What somebody asks who knows control and not this project, and the heading that answers.
QUESTIONS = {
    "How do I bring my own model?": ("tutorials/servo.md", "## The model"),
    "How do I read the gap table?": ("howto/report.md", "## The gap table"),
    "What does the bracket mean?": ("explanation/gap.md", "## What the bracket means"),
    "How do I run the policy in a loop?": ("loop.md", "# A policy in a loop"),
    "What about set-points?": ("loop.md", "## Set-points"),
    "What does each key of a study mean?": ("reference/keys.md", "# Every key of a study"),
    "What do the arguments of a function mean?": ("reference/python/evaluation.md", "# Evaluation"),
    "Which horizon?": ("howto/choose.md", "## The horizon"),
    "How do I add a lower bound?": ("howto/extend.md", "## A lower bound"),
    "What if the audit says no?": ("howto/trouble.md", "## The audit says no"),
    "What if training does not improve?": ("howto/trouble.md", "## Training does not improve"),
    "What if nothing is fit?": ("howto/trouble.md", "## Nothing is fit"),
    "Is that true?": ("claims.md", "# Claims"),
}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def clicks(page):
    """The pages that one click leads to: links of the text, and the navigation of its section."""
    text = page.read_text()
    entries = [
        line for tree in TOCTREE.findall(text) for line in tree.splitlines() if line[:1] not in {"", ":"}
    ]
    targets = [link for link in LINK.findall(text) if "://" not in link] + [
        f"{entry}.md" for entry in entries
    ]
    return {(page.parent / target).resolve() for target in targets}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_two_clicks_from_the_start(question):
    page, heading = QUESTIONS[question]
    start, target = ROOT / "docs" / "index.md", (ROOT / "docs" / page).resolve()
    once = clicks(start)
    twice = set().union(*(clicks(each) for each in once if each.suffix == ".md"))
    assert target in once | twice
    assert f"\n{heading}\n" in f"\n{target.read_text()}"


WRITTEN = [ROOT / name for name in ("README.md", "STYLE.md", "CONTRIBUTING.md")] + PAGES
COMMAND = re.compile(r"(?:`|^(?:    |\$ )?)lqgap ([a-z]+)\b([^`\n]*)", re.MULTILINE)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_commands_that_a_page_names_exist_with_their_options(page):
    commands = typer.main.get_command(app).commands
    for name, rest in COMMAND.findall(page.read_text()):
        options = {option for each in commands[name].params for option in each.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest.partition("#")[0])) <= {*options, "--help"}, (
            name
        )


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_modules_that_a_page_runs_exist(page):
    for name in re.findall(r"python -m (benchmarks[\w.]*)", page.read_text()):
        path = ROOT / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def test_blocks_of_the_style_guide_are_python():
    for code in blocks(ROOT / "STYLE.md", "python"):
        ast.parse(code)
