"""How long a call takes, tables of it, and the page that they are on."""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def seconds(call: Callable[[], Any], *, rounds: int = 7) -> float:
    """The shortest of several rounds: on a noisy machine the least disturbed one."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(call())
        best = min(best, time.perf_counter() - start)
    return best


def table(title: str, note: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown section with one table."""
    lines = [f"## {title}", "", note, "", " | ".join(["", *header, ""]).strip()]
    lines.append("|" + "---|" * len(header))
    filled = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    lines += [" | ".join(["", *row, ""]).strip() for row in filled]
    return "\n".join(lines) + "\n"


def put(page: Path, text: str) -> None:
    """Sections on a page, in place of those of the same title; new ones at its end."""
    parts = [each.strip() for both in (page.read_text(), text) for each in re.split(r"(?m)^(?=## )", both)]
    sections = {
        each.splitlines()[0]: each for each in parts if each
    }  # a later one has the place of the first
    page.write_text("\n\n".join(sections.values()) + "\n")
