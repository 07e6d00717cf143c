"""A sheet of figures with named rows and columns: a table for people, JSON for programs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lqgap.files import finite_or_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True)
class Sheet:
    """Figures by column and row; a column may leave rows out.

    Args:
        meaning: what a row is, by its name; also the order of the rows.
    """

    title: str
    columns: Mapping[str, Mapping[str, float]]
    meaning: Mapping[str, str]

    def __getitem__(self, column: str) -> Mapping[str, float]:
        return self.columns[column]

    def to_json(self) -> str:
        """The figures by column, and what they mean; what is infinite is text."""
        figures = {
            column: {name: float(value) for name, value in rows.items()}
            for column, rows in self.columns.items()
        }
        record = {"title": self.title, "columns": figures, "meaning": dict(self.meaning)}
        return json.dumps(finite_or_text(record), indent=2)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.markup import escape  # noqa: PLC0415  (loaded only where something is shown)
        from rich.table import Table  # noqa: PLC0415

        del console, options
        table = Table(title=escape(self.title), title_justify="left")
        table.add_column("")
        for column in self.columns:
            table.add_column(column, justify="right")
        table.add_column("meaning", overflow="fold")
        for name, meaning in self.meaning.items():
            cells = [f"{rows[name]:.4g}" if name in rows else "-" for rows in self.columns.values()]
            table.add_row(escape(name), *cells, escape(meaning))
        yield table
