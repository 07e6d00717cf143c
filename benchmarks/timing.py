"""How long a call takes, and tables of it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax


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
    lines += [" | ".join(["", *row, ""]).strip() for row in rows]
    return "\n".join(lines) + "\n"
