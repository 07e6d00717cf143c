"""Controllers that cannot tell members apart although that would pay.

Under the controller of member k, on its own plant, the observations favour k over member j by so many nats a
step (`systems.separation`). Where that is next to nothing, and controller k loses E_kj a step on plant j,
whoever acts by k alone never learns that j is true and goes on losing. The assumptions of the paper admit
such classes: there optimism explores, and here probing does (`policies.stake`).
"""

from dataclasses import dataclass

import numpy as np

from lqgap.simulators.finite import Finite
from lqgap.systems.separation import LEAST_EXCESS, excess_of, own_information

LEAST_NATS = 1e-4  # a step: with less, ten thousand steps bring less than one nat
MOST_NAMED, MOST_MEMBERS = 3, 1000
Array = np.ndarray
REMEDY = 'learners over a class and trained policies probe for it, unless probe = "off"'


@dataclass(frozen=True)
class Uninformative:
    """A controller, and the members that it cannot tell from its own."""

    controller: int
    members: tuple[int, ...]
    excess: float  # a step, at most
    optimum: float  # J of the member on which it loses so much


def find_uninformative(members: Finite, usable: Array) -> tuple[Uninformative, ...]:
    """The controllers that leave something at stake, those first that lose most.

    Args:
        usable: numbers of the members that have an optimum; of very many, some evenly spaced are looked at.
    """
    if not len(usable):
        return ()
    usable = usable[np.unique(np.linspace(0, len(usable) - 1, MOST_MEMBERS).astype(int))]
    some = members.subset(usable)
    systems, optima = some.systems, some.optima()
    J = np.asarray(optima.J)
    blind = np.argwhere(own_information(systems, optima) < LEAST_NATS)
    blind = blind[blind[:, 0] != blind[:, 1]]
    excess = excess_of(systems, optima, blind[:, 0], blind[:, 1])
    counts = np.isfinite(excess) & (excess > LEAST_EXCESS * J[blind[:, 1]])
    found = []
    for k in np.unique(blind[counts, 0]):
        rows = np.flatnonzero(counts & (blind[:, 0] == k))
        rows = rows[np.argsort(-excess[rows])]
        others, worst = blind[rows, 1], rows[0]
        found.append(
            Uninformative(
                controller=int(usable[k]),
                members=tuple(usable[others].tolist()),
                excess=float(excess[worst]),
                optimum=float(J[blind[worst, 1]]),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.excess))


def describe(members: Finite, found: tuple[Uninformative, ...]) -> list[str]:
    """What was found, in words; the worst few controllers by name."""
    lines = []
    for each in found[:MOST_NAMED]:
        own = members.describe(each.controller).split(", ")
        named = [members.describe(j).split(", ") for j in each.members[:MOST_NAMED]]
        others = " or ".join(", ".join(part for part in name if part not in own) for name in named)
        more = f" or {len(each.members) - MOST_NAMED} more" if len(each.members) > MOST_NAMED else ""
        lines.append(
            f"the controller for {', '.join(own)} cannot tell that plant from the one with {others}{more}, "
            f"where it loses up to {each.excess:.3g} a step, {each.excess / each.optimum:.1%} of the optimum"
        )
    if len(found) > MOST_NAMED:
        lines.append(f"{len(found) - MOST_NAMED} more controllers cannot tell such members apart")
    return lines and [*lines[:-1], f"{lines[-1]}; {REMEDY}"]
