"""The class that policies are made from, audited."""

import numpy as np

from lqgap.errors import NotConvergedError
from lqgap.experiments.plants import Plants
from lqgap.experiments.record import Audit, Condition
from lqgap.experiments.results import AuditedClass
from lqgap.simulators import check_assumptions


def audit(plants: Plants) -> AuditedClass:
    """Which assumptions hold, and which members are left: those that have an optimum."""
    members = plants.members
    found = check_assumptions(members)
    has_optimum = np.asarray(found.measures.has_optimum)
    kept = np.flatnonzero(has_optimum).tolist()
    if not kept:
        raise NotConvergedError(f"no member of the class has an optimum: {found.checks[0].remedy}")
    actions = []
    if removed := len(members) - len(kept):
        first = members.describe(int(np.argmin(has_optimum)))
        actions.append(f"removed {removed} of {len(members)} members without an optimum, such as {first}")
    unstable = int(np.sum(np.asarray(found.measures.spectral_radius)[kept] >= 1))
    if unstable:
        actions.append(f"kept {unstable} members that are open-loop unstable: no bound of the theory holds")
    contraction = found.contraction
    if contraction is not None and contraction.holds and not found.holds_as_printed:
        actions.append(
            f"bounds use a common weighted norm of condition {contraction.condition:.3g}, in which all "
            f"closed loops contract by {contraction.gamma:.4g}"
        )
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
