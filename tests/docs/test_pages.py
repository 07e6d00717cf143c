"""What the pages say a user may type, works: every block of Python that `make docs` does not run itself."""

import ast
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import lqgap as lg

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
