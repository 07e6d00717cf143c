"""The two oracles of the theory, approximately: policies trained for a small worst gap, or a small mean gap.

Training is a local search among the policies of one kind: its result is the best policy that it evaluated;
how far that is from the best possible is for `certify` to say. `train_robust` plays the policy against
weights on the members of a class. For a continuous family the class grows: after each round a search over the
parameters looks for members that are worse than all of the class; they join, until none is found (as in a
double oracle, with neither answer exact). A search ends the last round too: what it found is part of the
result. `train_randomized` holds the weights, over up to 32 fixed members of a continuous family.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from lqgap.arguments import IntLike, read_array
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import require_fit
from lqgap.evaluation.worst import WorstFound
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import LimitsLike
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily, draw_distinct
from lqgap.simulators.finite import Members
from lqgap.training.options import TrainingOptions
from lqgap.training.result import TrainingResult
from lqgap.training.task import Monitor, Outcome, TrainingTask

FEW_MEMBERS = 32  # from which the class of a continuous family grows, or which stand for it in randomisation
MOST_JOINING = 6  # of the members found in a search


def train_robust(
    policy: AbstractPolicy,
    members: Members | AbstractFamily,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    options: TrainingOptions | None = None,
    limits: LimitsLike = None,
    monitor: Monitor | None = None,
    ends: bool = True,
) -> TrainingResult:
    """Robust adversarial training: lower the largest gap over a class.

    Args:
        members: a finite class, or a family of simulators, whose worst members are searched for.
        horizon: the last step of the gap.
        limits: (low, high) of the inputs.
        ends: whether the task ends at the horizon; if not, the state left then counts.
    """
    task = TrainingTask(policy, horizon, key, options, limits, monitor, ends)
    if not isinstance(members, AbstractFamily):
        members = Finite.of(members)
        require_fit(policy, members.systems)
        return task.result(task.train(members, _uniform(members), is_robust=True))
    active = _first_members(members)
    weights = _uniform(active)
    while True:
        outcome = task.train(active, weights, is_robust=True)
        found = task.search(outcome.policy, members)
        joining = _worse_members(task, outcome, found)
        if not joining or task.num_searches == task.options.rounds:
            return task.result(outcome, found)
        task.policy = outcome.policy
        active = members.members(np.concatenate([np.asarray(active.parameters), joining]))
        weights = np.concatenate([outcome.weights, np.full(len(joining), outcome.weights.max())])
        weights = weights / weights.sum()


def train_randomized(  # noqa: PLR0913
    policy: AbstractPolicy,
    members: Members | AbstractFamily,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    weights: Any = None,
    options: TrainingOptions | None = None,
    limits: LimitsLike = None,
    monitor: Monitor | None = None,
    ends: bool = True,
) -> TrainingResult:
    """Domain randomisation: lower the mean gap over a class.

    Args:
        members: a finite class, or a family of simulators, of which members are drawn.
        weights: one for each member of a finite class, or a density over a family: a function of the
            parameters by name; uniform if left out.
        ends: whether the task ends at the horizon; if not, the state left then counts.
    """
    task = TrainingTask(policy, horizon, key, options, limits, monitor, ends)
    if isinstance(members, AbstractFamily):
        family = members
        members = family.members(draw_distinct(family, jax.random.fold_in(task.key, 0), FEW_MEMBERS))
        if callable(weights):
            density: Any = weights
            rows = np.asarray(members.parameters)
            weights = [float(density(**dict(zip(family.names, row, strict=True)))) for row in rows]
    else:
        members = Finite.of(members)
        require_fit(policy, members.systems)
    return task.result(task.train(members, _read_weights(weights, members), is_robust=False))


def _worse_members(task: TrainingTask, outcome: Outcome, found: WorstFound) -> list[np.ndarray]:
    """Parameters of the members found to be worse than all of the class, and apart from it."""
    worst = task.judge(outcome.policy, outcome.members).worst
    is_worse = found.gaps.mean - 2 * found.gaps.stderr > worst * (1 + task.options.tolerance)
    known, theta = (np.asarray(members.parameters) for members in (outcome.members, found.members))
    width = np.maximum(np.ptp(np.concatenate([known, theta]), axis=0), 1e-30)
    joining: list[np.ndarray] = []
    for row in theta[is_worse]:
        others = np.concatenate([known, *[other[None] for other in joining]])
        if len(joining) < MOST_JOINING and np.min(np.linalg.norm((others - row) / width, axis=1)) > 0.02:
            joining.append(row)
    return joining


def _first_members(family: AbstractFamily) -> Finite:
    """A small grid; a sample where even two points along each parameter are many."""
    count = len(family.names)
    for points in (3, 2):
        if points**count <= FEW_MEMBERS:
            return family.grid(points)
    return family.sample(FEW_MEMBERS, key=jax.random.key(0))


def _uniform(members: Finite) -> np.ndarray:
    return np.full(len(members), 1 / len(members))


def _read_weights(weights: Any, members: Finite) -> np.ndarray:
    if weights is None:
        return _uniform(members)
    if callable(weights):
        raise InvalidArgumentError(
            "weights is a function, which only a continuous family can have as a density"
        )
    array = np.asarray(read_array("weights", weights, num_axes=1))
    if array.shape != (len(members),) or np.any(array < 0) or array.sum() <= 0:
        raise InvalidArgumentError(
            f"weights has shape {array.shape}, expected a probability for each of {len(members)} members"
        )
    return array / array.sum()
