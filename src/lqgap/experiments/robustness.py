"""The least margins of a linear method over the class and the real plants."""

import numpy as np

from lqgap.batches import take
from lqgap.evaluation.margins import has_margins, margins
from lqgap.experiments.methods.base import Knowing
from lqgap.experiments.record import Margin
from lqgap.experiments.units import Workspace
from lqgap.policies import AbstractPolicy


def least_margins(workspace: Workspace, policy: AbstractPolicy | Knowing) -> list[Margin]:
    """Every kind of margin with the plant on which it is least; none of a policy that is not linear."""
    if isinstance(policy, Knowing) or not has_margins(policy):
        return []
    of_class, _, of_real = workspace.split(np.arange(len(workspace.judged.A)))
    plants = np.concatenate([of_class, of_real])
    found = margins(policy, take(workspace.judged, plants)).smallest()
    return [
        Margin(kind=kind, value=value, plant=workspace.describe(int(plants[index])))
        for kind, (value, index) in found.items()
    ]
