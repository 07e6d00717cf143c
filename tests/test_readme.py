"""What the README and the pages say a user may type, works."""

import contextlib
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import jax
import pytest
from golden import demo

from lqgap.experiments.family import make_family, signals_of
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.record import Record
from lqgap.report.numbers import show

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
OVERVIEW = (ROOT / "docs" / "overview.md").read_text()
SMALL = ROOT / "tests" / "support" / "small.toml"


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run(code, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), jax.numpy_rank_promotion("allow"):
        exec(code, names)  # noqa: S102
    return printed.getvalue()


def lqgap(words, folder):
    """As users run it: the settings of tests are not theirs."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    command = [sys.executable, "-m", "lqgap", *words]
    answer = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, (words, answer.stderr)


def test_the_example_prints_what_it_says():
    code, [expected] = blocks("python")[0], blocks("text")
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    assert run(code, {}) == expected


def test_the_table_and_the_figures_below_it_are_the_demos():
    record = Record.model_validate_json(demo.GOLDEN.read_text())
    bracket = record.bracket
    assert demo.table(record) in README
    assert f"has a worst gap over the ranges below {show(bracket.lower)} " in README
    upper = f"with confidence {bracket.confidence:.2f} in all plants that a search found, at most"
    upper += f" {show(bracket.upper)}: at most {show(bracket.factor, digits=2)}\ntimes the best possible"
    assert f"that of {record.method(bracket.method).label.lower()} is, {upper}" in README
    assert bracket.method == record.recommended
    assert f"over {record.gaps.horizon} steps" in README


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_demo_still_finds_the_figures_of_the_readme(tmp_path):
    lqgap(["transfer", "--output", "demo"], tmp_path)
    assert demo.table(Record.model_validate_json((tmp_path / "demo" / "record.json").read_text())) in README


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_example_of_the_overview_runs():
    names = {}
    for code in blocks("python", OVERVIEW):
        run(code, names)
    assert 1 <= names["certificate"].factor < float("inf")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [README, OVERVIEW], ids=["README", "overview"])
def test_every_command_runs(page, tmp_path):
    for line in "".join(blocks("console", page)).splitlines():
        command, *words = shlex.split(line, comments=True)
        assert command == "lqgap"
        lqgap(words, tmp_path)
        if words[0] == "init":
            shutil.copy(SMALL, tmp_path / words[1])  # the same commands, less to compute
    assert list(tmp_path.glob("results/report.html"))
    assert bool(list(tmp_path.glob("results/**/*.svg"))) == ("--figures" in page)


def test_commands_stand_on_the_two_pages_whose_commands_are_run():
    for page in ROOT.glob("docs/**/*.md"):
        assert page.name == "overview.md" or not blocks("console", page.read_text())


def test_every_study_of_the_pages_makes_a_family(tmp_path):
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for text in blocks("toml", page.read_text()):
            study, source = parse_study(text, name=page.name, folder=tmp_path)
            family = make_family(study, source)
            assert signals_of(study, family, source).limits
            assert family.nominal().num_states == 3


def test_every_target_of_make_that_the_pages_name_exists():
    makefile = (ROOT / "Makefile").read_text()
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"(?:^    |`)make (\S+?)(?=`|\s)", (ROOT / page).read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
