"""The two oracles: the policy with the smallest worst gap, and the one with the smallest mean gap.

`train_robust` plays the policy against weights on the members of a class. For a continuous family the class
grows: after each round a search over the parameters looks for a member that is worse than all of the class;
it joins, until none is found (a double oracle). `train_randomized` holds the weights.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from lqgap.arguments import IntLike, read_array
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import require_fit
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import LimitsLike
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily, draw_distinct
from lqgap.simulators.finite import Members
from lqgap.training.options import TrainingOptions
from lqgap.training.result import TrainingResult
from lqgap.training.search import find_worst
from lqgap.training.task import Monitor, Outcome, TrainingTask

FEW_MEMBERS = 32  # from which the class of a continuous family grows, or which stand for it in randomisation


def train_robust(
    policy: AbstractPolicy,
    members: Members | AbstractFamily,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    options: TrainingOptions | None = None,
    limits: LimitsLike = None,
    monitor: Monitor | None = None,
) -> TrainingResult:
    """Robust adversarial training: lower the largest gap over a class.

    Args:
        members: a finite class, or a family of simulators, whose worst members are searched for.
        horizon: the last step of the gap.
        limits: (low, high) of the inputs.
    """
    task = TrainingTask(policy, horizon, key, options, limits, monitor)
    if not isinstance(members, AbstractFamily):
        members = Finite.of(members)
        require_fit(policy, members.systems)
        return task.result(task.train(members, _uniform(members), is_robust=True))
    active = _first_members(members)
    outcome = task.train(active, _uniform(active), is_robust=True)
    for search in range(1, task.options.rounds):
        worse = _worse_members(task, members, outcome, search)
        if worse is None:
            break
        task.policy, active = outcome.policy, worse
        weights = np.concatenate(
            [outcome.weights, np.full(len(worse) - len(outcome.weights), outcome.weights.max())]
        )
        outcome = task.train(active, weights / weights.sum(), is_robust=True)
    return task.result(outcome)


def train_randomized(
    policy: AbstractPolicy,
    members: Members | AbstractFamily,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    weights: Any = None,
    options: TrainingOptions | None = None,
    limits: LimitsLike = None,
    monitor: Monitor | None = None,
) -> TrainingResult:
    """Domain randomisation: lower the mean gap over a class.

    Args:
        members: a finite class, or a family of simulators, of which members are drawn.
        weights: one for each member of a finite class, or a density over a family: a function of the
            parameters by name; uniform if left out.
    """
    task = TrainingTask(policy, horizon, key, options, limits, monitor)
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


def _worse_members(
    task: TrainingTask, family: AbstractFamily, outcome: Outcome, search: int
) -> Finite | None:
    """The class with the members that the search found to be worse than all of it; None if there are none."""
    key = jax.random.fold_in(task.key, 2**30 + search)
    theta, found = find_worst(outcome.policy, family, key, horizon=task.horizon, limits=task.limits)
    worst = task.judge(outcome.policy, outcome.members).worst
    is_worse = found.mean - 2 * found.stderr > worst * (1 + task.options.tolerance)
    known = np.asarray(outcome.members.parameters)
    width = np.maximum(np.ptp(np.concatenate([known, theta]), axis=0), 1e-30)
    joining: list[np.ndarray] = []
    for row in theta[is_worse]:
        others = np.concatenate([known, *[other[None] for other in joining]])
        if np.min(np.linalg.norm((others - row) / width, axis=1)) > 0.02:
            joining.append(row)
    return family.members(np.concatenate([known, np.asarray(joining)])) if joining else None


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
