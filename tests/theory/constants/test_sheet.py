import io
import json

import pytest
from rich.console import Console

from lqgap.theory import Sheet

SHEET = Sheet(
    title="Figures [of a class]",
    columns={"one": {"N": 1.5, "D": float("inf")}, "other": {"N": 2.0}},
    meaning={"N": "a norm", "D": "a bound"},
)


def test_it_prints_as_a_table_with_a_dash_where_a_column_has_no_figure():
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(SHEET)
    text = console.export_text()
    assert "Figures [of a class]" in text
    row = next(line for line in text.splitlines() if "a bound" in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")] == ["D", "inf", "-", "a bound"]


def test_it_is_json_without_infinities():
    record = json.loads(SHEET.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["columns"] == {"one": {"N": 1.5, "D": "inf"}, "other": {"N": 2.0}}
    assert SHEET["one"]["N"] == 1.5
