"""The page of errata cites tests that exist, and leaves none without one but what is only wording."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
ROWS = re.findall(
    r"^\| (E\d\d) \|.*\| (\w+) \| (.*) \|$", (ROOT / "docs" / "errata.md").read_text(), re.MULTILINE
)


def test_all_thirty_one_are_listed_once():
    assert [name for name, _, _ in ROWS] == [f"E{number:02d}" for number in range(1, 32)]


@pytest.mark.parametrize(("name", "kind", "cited"), ROWS)
def test_what_is_cited_exists(name, kind, cited):
    tests = re.findall(r"`([^`]+)::(\w+)`", cited)
    assert kind in {"numbers", "wording"}
    assert tests or kind == "wording", name
    for path, function in tests:
        assert re.search(rf"^def {function}\(", (ROOT / path).read_text(), re.MULTILINE), function
