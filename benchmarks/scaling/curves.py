"""Costs over sizes, the exponents with which they grow, and their pictures."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import matplotlib
import numpy as np

matplotlib.use("agg")
from matplotlib import pyplot

DOCS = Path(__file__).parents[2] / "docs"
ROUNDS, ENOUGH = 4, 0.2  # rounds of a call after compilation, and seconds after which no other begins


@dataclass(frozen=True)
class Curve:
    """What a computation costs at several sizes; `expected` is the exponent for large ones."""

    name: str
    expected: str
    sizes: Sequence[int]
    costs: Sequence[float]

    @property
    def exponent(self) -> float:
        """The slope in logarithms over the upper half of the sizes: fixed costs hide the one below."""
        half = math.sqrt(self.sizes[0] * self.sizes[-1])
        count = max(2, sum(size >= half for size in self.sizes))
        slope, _ = np.polyfit(np.log(self.sizes[-count:]), np.log(self.costs[-count:]), 1)
        return float(slope)

    def row(self, show: Callable[[float], str]) -> list[str]:
        """For a table: the exponent, what was expected of it, and the costs at the ends."""
        first, last = (show(self.costs[end]) for end in (0, -1))
        return [self.name, f"{self.exponent:.2f}", self.expected, f"{first} at {_count(self.sizes[0])}",
                f"{last} at {_count(self.sizes[-1])}"]  # fmt: skip


HEADER = ["", "exponent", "expected", "at the least", "at the most"]


def time_of(call: Callable[[], Any]) -> float:
    """The least time of processors that a call takes after compilation; of one call if it takes long.

    Not the time on the clock, which also counts what others do on the machine.
    """
    jax.block_until_ready(call())
    best, begun = math.inf, time.process_time()
    for _ in range(ROUNDS):
        start = time.process_time()
        jax.block_until_ready(call())
        best = min(best, time.process_time() - start)
        if time.process_time() - begun > ENOUGH:
            break
    return best


def curve(
    name: str,
    expected: str,
    sizes: Sequence[int],
    make: Callable[[int], Callable[[], Any]],
    *,
    per: float = 1,
) -> Curve:
    """The time of what `make` returns for every size, divided by `per`."""
    return Curve(name, expected, sizes, [time_of(make(size)) / per for size in sizes])


def show_seconds(value: float) -> str:
    """A duration, for people."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def show_megabytes(value: float) -> str:
    """Memory, for people."""
    return f"{value:.0f} MB" if value < 10_000 else f"{value / 1000:.1f} GB"


def draw(
    name: str, curves: Iterable[Curve], *, over: str, cost: str, tell: Callable[[Curve], str] | None = None
) -> str:
    """A log-log picture in docs/figures, by default with exponents (and what was expected); its path."""
    tell = tell or (lambda each: f"{each.exponent:.2f} ({each.expected})")
    with matplotlib.rc_context(fname=DOCS / "static" / "matplotlibrc"):
        figure, axes = pyplot.subplots(figsize=(7, 3.6))
        for number, each in enumerate(curves):
            label = f"{each.name.replace('`', '')}: {tell(each)}"
            axes.loglog(each.sizes, each.costs, "osv^Dd<>"[number] + "-", markersize=4, label=label)
        axes.set(xlabel=over, ylabel=cost)
        if max(axes.get_xlim()) < 1_000:  # one decade has too few ticks, and those between too many labels
            axes.set_xticks(sizes := list(each.sizes), labels=list(map(str, sizes)))
            axes.set_xticks([], minor=True)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        path = Path("figures") / f"{name}.svg"
        figure.savefig(DOCS / path, metadata={"Date": None})
        pyplot.close(figure)
    return path.as_posix()


def _count(size: int) -> str:
    return f"{size:,}"
