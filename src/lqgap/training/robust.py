"""The two oracles of the theory, approximately: policies trained for a small worst gap, or a small mean gap.

Training is a local search among the policies of one kind: its result is the best policy that it evaluated;
how far that is from the best possible is for `certify` to say. `train_robust` plays the policy against
weights on the members of a class. For a continuous family the class grows: after each round a search over the
parameters looks for members that are worse than all of the class; they join, until none is found (as in a
double oracle, with neither answer exact). A bank is made anew of the members of that class, and answers the
adversary by its prior (`training.answer`). A search ends the last round too: what it found is part of the
result. `train_randomized` holds the weights; of a continuous family it draws fresh members at every update.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from lqgap.arguments import IntLike, read_array
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import require_fit
from lqgap.policies import AbstractPolicy, ModelBank
from lqgap.policies.limits import LimitsLike
from lqgap.progress import is_spent
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily, draw_distinct
from lqgap.simulators.finite import Members
from lqgap.training.answer import grow
from lqgap.training.options import TrainingOptions
from lqgap.training.result import TrainingResult
from lqgap.training.task import Monitor, Outcome, TrainingTask

FEW_MEMBERS = 32  # from which the class of a continuous family grows, or which an update draws from it
MODELS = 64  # of a bank, as which such a class begins: a plant between two models loses to both of them
MOST_POINTS = 9  # of that class along a parameter
MOST_JOINING, APART = (
    6,
    0.05,
)  # of the members found in a search, and how far from others, in units of the ranges
WORSE, COMPARED = 0.05, 256  # by how much than all of the class, relative, in how many rollouts
NUM_FIXED = 64  # members of a continuous family that randomised training is validated and judged on
OVERSAMPLED = 4  # times as many rows as a density is to choose


def train_robust(  # noqa: PLR0913
    policy: AbstractPolicy,
    members: Members | AbstractFamily,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    options: TrainingOptions | None = None,
    limits: LimitsLike = None,
    monitor: Monitor | None = None,
    ends: bool = True,
    candidates: Mapping[str, AbstractPolicy] | None = None,
) -> TrainingResult:
    """Robust adversarial training: lower the largest gap over a class.

    Args:
        members: a finite class, or a family of simulators, whose worst members are searched for.
        horizon: the last step of the gap.
        limits: (low, high) of the inputs.
        ends: whether the task ends at the horizon; if not, the state left then counts.
        candidates: other policies by name, such as learners over the class; the best of all is returned.
    """
    task = TrainingTask(policy, horizon, key, options, limits, monitor, ends)
    if not isinstance(members, AbstractFamily):
        members = Finite.of(members)
        require_fit(policy, members.systems)
        outcome = task.train(members, _uniform(members), is_robust=True)
        return task.result(task.compare(outcome, candidates))
    return _train_on_family(task, members, candidates)


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
    candidates: Mapping[str, AbstractPolicy] | None = None,
) -> TrainingResult:
    """Domain randomisation: lower the mean gap over a class.

    Args:
        members: a finite class, or a family of simulators, of which members are drawn.
        weights: one for each member of a finite class, or a density over a family: a function of the
            parameters by name; uniform if left out.
        ends: whether the task ends at the horizon; if not, the state left then counts.
        candidates: other policies by name, such as learners over the class; the best of all is returned.
    """
    task = TrainingTask(policy, horizon, key, options, limits, monitor, ends)
    if not isinstance(members, AbstractFamily):
        members = Finite.of(members)
        require_fit(policy, members.systems)
        outcome = task.train(members, _read_weights(weights, members), is_robust=False)
        return task.result(task.compare(outcome, candidates))
    family = members
    members = family.members(draw_distinct(family, jax.random.fold_in(task.key, 0), NUM_FIXED))
    density = weights if callable(weights) else None
    given = weights if density is None else _densities(density, family, np.asarray(members.parameters))

    def draw(key: Array, num_updates: int) -> Finite:
        return family.members(_draw_rows(family, density, key, num_updates * FEW_MEMBERS))

    outcome = task.train(members, _read_weights(given, members), is_robust=False, draw=draw)
    return task.result(task.compare(outcome, candidates, draw))


def _train_on_family(
    task: TrainingTask, family: AbstractFamily, candidates: Mapping[str, AbstractPolicy] | None
) -> TrainingResult:
    """Rounds of training and search; a bank is made anew of the class as it grows, and answers it."""
    active = _first_members(family, most=MODELS if _can_answer(task.policy) else FEW_MEMBERS)
    weights = _uniform(active)
    while True:
        bank = task.policy
        if _can_answer(bank):
            task.policy = grow(bank, active.systems, weights)
            outcome = task.answer(Outcome(task.policy, active, weights, is_converged=False, is_robust=True))
        else:
            outcome = task.train(active, weights, is_robust=True)
        found = task.search(outcome.policy, family)
        joining = _worse_members(task, outcome, found)
        if not joining or task.num_searches == task.options.rounds or is_spent():
            better = task.compare(outcome, candidates)
            return task.result(better, found if better is outcome else task.search(better.policy, family))
        task.policy = outcome.policy
        active = family.members(np.concatenate([np.asarray(active.parameters), joining]))
        weights = np.concatenate([outcome.weights, np.full(len(joining), outcome.weights.max())])
        weights = weights / weights.sum()


def _can_answer(policy: AbstractPolicy) -> TypeGuard[ModelBank]:
    return isinstance(policy, ModelBank) and policy.mode == "mixture"


def _worse_members(task: TrainingTask, outcome: Outcome, found: Finite) -> list[np.ndarray]:
    """Parameters of the members found to be worse than all of the class, and apart from it."""
    key = jax.random.fold_in(task.key, 2**29 + task.num_searches)
    worst = np.max(task.gaps(outcome.policy, outcome.members, key, COMPARED))
    is_worse = task.gaps(outcome.policy, found, key, COMPARED) > worst * (1 + WORSE)
    known, theta = (np.asarray(members.parameters) for members in (outcome.members, found))
    width = np.maximum(np.ptp(np.concatenate([known, theta]), axis=0), 1e-30)
    joining: list[np.ndarray] = []
    for row in theta[is_worse]:
        others = np.concatenate([known, *[other[None] for other in joining]])
        if len(joining) < MOST_JOINING and np.min(np.linalg.norm((others - row) / width, axis=1)) > APART:
            joining.append(row)
    return joining


def _first_members(family: AbstractFamily, *, most: int) -> Finite:
    """A small grid; a sample where even two points along each parameter are many."""
    for points in range(MOST_POINTS, 1, -1):
        if points ** len(family.names) <= most:
            return family.grid(points)
    return family.sample(most, key=jax.random.key(0))


def _densities(density: Any, family: AbstractFamily, rows: np.ndarray) -> list[float]:
    return [float(density(**dict(zip(family.names, row, strict=True)))) for row in rows]


def _draw_rows(family: AbstractFamily, density: Any, key: PRNGKeyArray, count: int) -> np.ndarray:
    """Parameters of members drawn from a density: of several times as many, those that it chooses."""
    if density is None:
        return family.sample_parameters(key, count)
    rows = family.sample_parameters(key, OVERSAMPLED * count)
    weights = np.asarray(_densities(density, family, rows))
    if not (np.all(weights >= 0) and weights.sum() > 0):
        raise InvalidArgumentError("weights is a density that is zero or negative on all members drawn")
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return rows[random.choice(len(rows), count, p=weights / weights.sum())]


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
