import io
import json

import pytest
from rich.console import Console
from springs import FAMILY

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import Finite, check_assumptions


@pytest.fixture(scope="module")
def report():
    return check_assumptions(FAMILY.grid(3))


def test_it_prints_as_tables(report):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report)
    text = console.export_text()
    for part in (
        "Assumptions of a class of 9 members",
        "open loop stable",
        "stiffness = ",
        "gamma_1_weighted",
    ):
        assert part in text


@pytest.mark.parametrize("width", [60, 80])
def test_no_word_is_broken_on_a_narrow_screen(report, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(report)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    shown = set(text.replace("\u2502", " ").split())
    for check in report.checks:
        assert set(f"{check.statement} {check.remedy}".split()) <= shown


def test_it_is_json_without_infinities(report):
    record = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["num_members"] == 9
    assert record["checks"][1]["parameters"].keys() == {"stiffness", "gain"}
    assert record["constants"]["N_P"] == "inf"


def test_what_no_norm_contracts_cannot_be_repaired():
    plants = [
        lqgap.LQG([[0.9, 3.0], [0.0, 0.9]], [[0.0], [1e-6]], [[1.0, 1.0]]),
        lqgap.LQG([[0.9, 0.0], [3.0, 0.9]], [[1e-6], [0.0]], [[1.0, 1.0]]),
    ]
    report = check_assumptions(Finite(plants))
    assert not report.holds_after_repair
    with pytest.raises(InvalidArgumentError, match="no common norm contracts all closed loops"):
        report.repair()
