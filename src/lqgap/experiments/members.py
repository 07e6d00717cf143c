"""The class that policies are made from: grown where it is needed, and audited.

It grows as in a double oracle. What is made of a class is, to begin with, the bank of its members; a search
finds where in the ranges that bank loses most; and what it finds joins the class while it is far worse than
all members, or diverges in the long run.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lqgap.errors import NotConvergedError
from lqgap.evaluation.worst import Search
from lqgap.experiments.endurance import share_lost
from lqgap.experiments.plants import Plants, key_for
from lqgap.experiments.record import Audit, Condition
from lqgap.experiments.results import AuditedClass, GrownClass
from lqgap.experiments.units import are_solvable
from lqgap.policies import ModelBank
from lqgap.progress import is_spent
from lqgap.simulators import AbstractFamily, check_assumptions

FAR = 1.5  # times the worst gap over the class: beyond it, a member is missing
NUM_ROUNDS = 4
NUM_JOINING = 8  # members in a round
APART = 0.1  # how far from all others a member is that joins, in units of the ranges
NUM_ROLLOUTS = 64

Rows = Float[np.ndarray, "_ parameter"]


def grow(plants: Plants, held: GrownClass | None = None) -> GrownClass:
    """The members that the class of a study is in need of, if the study leaves that open.

    Args:
        held: how far it has grown within a smaller budget of time.
    """
    grid, family = plants.study.grid, plants.family
    if grid.points != "auto" or grid.sample is not None or not isinstance(family, AbstractFamily):
        return GrownClass()
    looks = [_look(plants, family, np.asarray(plants.members.parameters))]
    if held is not None and held.added:
        looks.append(_look(plants, family, np.concatenate([looks[0].rows, np.asarray(held.added)])))
    while len(looks[-1].joining) and len(looks) <= NUM_ROUNDS and not is_spent():
        looks.append(_look(plants, family, np.concatenate([looks[-1].rows, looks[-1].joining])))
    first, best = looks[0], min(reversed(looks), key=lambda look: look.worst)
    if best is first:
        return GrownClass()
    size = len(first.rows)
    action = (
        f"the class grew from {size} to {len(best.rows)} members: in the ranges the bank of the first "
        f"{first.account}, that of all {best.account}"
    )
    return GrownClass(added=best.rows[size:].tolist(), action=action)


def audit(plants: Plants, *, grown: str | None = None) -> AuditedClass:
    """Which assumptions hold, and which members are left: those that have an optimum.

    Args:
        grown: how the class grew, for the account of what was done.
    """
    members = plants.members
    found = check_assumptions(members)
    has_optimum = np.asarray(found.measures.has_optimum)
    kept = np.flatnonzero(has_optimum).tolist()
    if not kept:
        raise NotConvergedError(f"no member of the class has an optimum: {found.checks[0].remedy}")
    actions = [grown] if grown else []
    if removed := len(members) - len(kept):
        first = members.describe(int(np.argmin(has_optimum)))
        actions.append(f"removed {removed} of {len(members)} members without an optimum, such as {first}")
    unstable = int(np.sum(np.asarray(found.measures.spectral_radius)[kept] >= 1))
    if unstable:
        actions.append(f"kept {unstable} members that are open-loop unstable: no bound of the theory holds")
    contraction = found.contraction
    if contraction is not None and contraction.holds and found.constants["gamma_1"] >= 1:
        actions.append(
            f"bounds use a common weighted norm of condition {contraction.condition:.3g}, in which all "
            f"closed loops contract by {contraction.gamma:.4g}"
        )
    actions += found.remarks()
    conditions = [
        Condition(
            assumption=check.assumption,
            statement=check.statement,
            as_printed=bool(check.as_printed),
            repaired=bool(check.repaired),
            value=float(check.value),
            margin=float(check.margin),
            set_by=members.describe(check.member),
            remedy=check.remedy,
        )
        for check in found.checks
    ]
    constants = {name: float(value) for name, value in found.constants.items()}
    report = Audit(
        num_members=len(members),
        num_kept=len(kept),
        actions=actions,
        conditions=conditions,
        constants=constants,
    )
    return AuditedClass(kept=kept, audit=report)


@dataclass(frozen=True)
class _Look:
    """How the bank of some members does over the class and in the ranges, and what should join."""

    rows: Rows
    worst_member: float
    worst: float
    joining: Rows

    @property
    def account(self) -> str:
        """What is found in the ranges, for people."""
        if not np.isfinite(self.worst):
            return "diverges"
        times = self.worst / self.worst_member if self.worst_member > 0 else np.inf
        return f"has a worst gap {times:.3g} times that over the class ({self.worst:.3g})"


def _look(plants: Plants, family: AbstractFamily, rows: np.ndarray) -> _Look:
    study = plants.study
    rows = rows[are_solvable(study, family.members(rows).systems)]
    search = Search(
        plants.limited(
            ModelBank(family.members(rows).systems, horizon=study.horizon if study.ends else None)
        ),
        family,
        key_for(study.seed, "class"),
        study.horizon,
        NUM_ROLLOUTS,
        ends=study.ends,
        by_derivative=False,
    )
    starts = np.concatenate([rows, np.asarray(plants.tried.parameters)]) if plants.tried else rows
    gaps = search.gaps(starts)
    found = search.climb_from(starts, gaps)
    reached, worst_member = search.gaps(found), float(np.max(gaps[: len(rows)]))
    if not study.ends:
        usable = np.flatnonzero(gaps > -np.inf)
        spread = usable[np.linspace(0, len(usable) - 1, len(found)).round().astype(int)]
        found, reached = np.concatenate([found, starts[spread]]), np.concatenate([reached, gaps[spread]])
        lost = share_lost(study, search.policy, family.members(found).systems) > 0
        reached = np.where(lost, np.inf, reached)
    far = np.argsort(-reached)[: np.sum(reached > FAR * worst_member)]
    return _Look(rows, worst_member, float(np.max(reached)), _apart(found[far], rows, search.extent()[1]))


def _apart(new: np.ndarray, known: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The first of the new rows that are away from all known ones and from each other."""
    chosen: list[np.ndarray] = []
    for row in new:
        others = np.concatenate([known, np.reshape(chosen, (-1, len(row)))])
        if len(chosen) < NUM_JOINING and np.all(np.linalg.norm((others - row) / width, axis=1) > APART):
            chosen.append(row)
    return np.reshape(chosen, (-1, known.shape[1]))
