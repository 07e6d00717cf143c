"""What is claimed is shown: what docs/claims.md cites exists, and figures agree with what they are taken from."""

import re
from pathlib import Path

import pytest

from lqgap.simulators.plants import FAMILIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README, OVERVIEW, BENCHMARKS = (
    path.read_text() for path in (ROOT / "README.md", DOCS / "overview.md", DOCS / "benchmarks.md")
)
MAKEFILE = (ROOT / "Makefile").read_text()
ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", (DOCS / "claims.md").read_text(), re.MULTILINE)
CLAIMS = [(claim, shown) for claim, shown in ROWS if claim != "claim" and not claim.startswith("-")]


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def column(section, name):
    """The numbers of a column of a table of the benchmarks."""
    text = BENCHMARKS.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    return [float(row[rows[0].index(name)].removesuffix("x")) for row in rows[2:]]


@pytest.mark.parametrize(("claim", "shown"), CLAIMS)
def test_a_claim_is_shown_by_what_exists(claim, shown):
    tests = re.findall(r"`(tests/[^`]+)::(\w+)`", shown)
    sections = re.findall(r"\[([^\]]+)\]\(benchmarks\.md#([^)]+)\)", shown)
    targets = re.findall(r"`make ([\w-]+)`", shown)
    assert tests or sections or targets, claim
    for path, function in tests:
        assert re.search(rf"^def {function}\(", (ROOT / path).read_text(), re.MULTILINE), function
    for title, link in sections:
        assert f"\n## {title}\n" in BENCHMARKS, title
        assert link == anchor(title)
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_figures_of_the_pages_are_those_of_the_code_and_the_benchmarks():
    assert len(FAMILIES) == 15
    assert "fifteen from the literature" in OVERVIEW
    low, high = map(
        int, re.search(r"(\d+) to (\d+) times faster than a loop\s+over SciPy", OVERVIEW).groups()
    )
    ratios = column("Discrete Riccati equations", "ratio")
    assert low <= min(ratios)
    assert high <= 1.2 * max(ratios)
    least = int(re.search(r"(\d+) times and more\s+against cost - V\*", OVERVIEW)[1])
    assert least <= min(column("Variance of the gap", "ratio"))
    low, high = map(int, re.search(r"(\d+) to (\d+) times against differences", OVERVIEW).groups())
    ratios = column("Variance of the gap", "ratio, common noise")
    assert low <= min(ratios)
    assert high >= max(ratios)


def test_the_factor_of_the_readme_is_its_upper_end_over_its_lower_end_and_no_interval_ends_above():
    lower = float(re.search(r"worst gap over the ranges below ([\d.]+) ", README)[1])
    upper, factor = map(float, re.search(r"at most ([\d.]+): at most ([\d.]+)\s+times", README).groups())
    assert round(upper / lower, 1) == factor
    worst = re.search(r"^\| Robust training \| (\d+) ± (\d+) ", README, re.MULTILINE)
    assert lower < int(worst[1]) < int(worst[1]) + int(worst[2]) <= upper  # of all plants at once
