"""The two oracles: the policy with the smallest worst gap, and the one with the smallest mean gap.

`train_robust` plays the policy against weights on the members of a class. For a continuous family the class
grows: after each round a search over the parameters looks for a member that is worse than all of the class;
it joins, until none is found (a double oracle). `train_randomized` holds the weights.
"""

import pathlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from lqgap.arguments import read_array, read_key
from lqgap.errors import InvalidArgumentError, LqgapWarning
from lqgap.evaluation import GapEstimate, gap
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, require_fit
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import Limits, read_limits
from lqgap.progress import track
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily
from lqgap.training.checkpoint import Checkpoint, fingerprint
from lqgap.training.engine import TrainingState, make_trainer, run, start
from lqgap.training.objective import AbstractObjective, is_exact, make_objective
from lqgap.training.options import TrainingOptions, read_options
from lqgap.training.result import TrainingResult
from lqgap.training.search import find_worst

HOPELESS = 100.0  # times the optimal cost: a policy that loses more does not hold the plant
FEW_MEMBERS = 32  # from which the class of a continuous family grows, or which stand for it in randomisation


@dataclass(frozen=True)
class Monitor:
    """Who looks on, and where the state is kept.

    Args:
        callback: called at every look at the gaps with a dictionary of numbers (step, worst, mean, best),
            for a logger of your choice.
        folder: for checkpoints; a training that was stopped goes on from there, with the same result.
    """

    callback: Callable[[dict[str, float]], None] | None = None
    folder: str | pathlib.Path | None = None


def train_robust(
    policy: AbstractPolicy,
    members: Any,
    *,
    horizon: Any,
    key: PRNGKeyArray,
    options: TrainingOptions | None = None,
    limits: Any = None,
    monitor: Monitor | None = None,
) -> TrainingResult:
    """Robust adversarial training: lower the largest gap over a class.

    Args:
        members: a finite class, or a family of simulators, whose worst members are searched for.
        horizon: the last step of the gap.
        limits: (low, high) of the inputs.
    """
    task = _Task(policy, horizon, key, options, limits, monitor)
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
    members: Any,
    *,
    horizon: Any,
    key: PRNGKeyArray,
    weights: Any = None,
    options: TrainingOptions | None = None,
    limits: Any = None,
    monitor: Monitor | None = None,
) -> TrainingResult:
    """Domain randomisation: lower the mean gap over a class.

    Args:
        members: a finite class, or a family of simulators, of which members are drawn.
        weights: one for each member of a finite class, or a density over a family: a function of the
            parameters by name; uniform if left out.
    """
    task = _Task(policy, horizon, key, options, limits, monitor)
    if isinstance(members, AbstractFamily):
        family, members = members, members.sample(jax.random.fold_in(task.key, 0), FEW_MEMBERS)
        if callable(weights):
            density: Any = weights
            rows = np.asarray(members.parameters)
            weights = [float(density(**dict(zip(family.names, row, strict=True)))) for row in rows]
    else:
        members = Finite.of(members)
        require_fit(policy, members.systems)
    return task.result(task.train(members, _read_weights(weights, members), is_robust=False))


@dataclass
class _Outcome:
    policy: AbstractPolicy
    members: Finite
    weights: np.ndarray
    is_converged: bool


class _Task:
    """What all rounds of one training have in common."""

    def __init__(self, policy: Any, horizon: Any, key: Any, options: Any, limits: Any, monitor: Any):
        self.horizon = read_horizon(policy, horizon)
        self.policy: AbstractPolicy = policy
        self.key: Array = read_key(key)
        self.options: TrainingOptions = read_options(options)
        self.limits: Limits = read_limits(limits, num_inputs=policy.num_inputs)
        self.monitor: Monitor = monitor or Monitor()
        self.history: list[dict[str, float]] = []
        self.num_stages = self.num_skipped = 0

    def train(self, members: Finite, weights: np.ndarray, *, is_robust: bool) -> _Outcome:
        """One round, from the policy as it is now: first by pathwise derivatives, then polished."""
        objective = make_objective(
            self.policy,
            members.systems,
            self.limits,
            horizon=self.horizon,
            dtype=read_precision(self.options.precision),
            fade=self.options.fade,
        )
        outcome = self._stage(objective, members, weights, is_robust=is_robust)
        if self.options.polish_for(self.policy) and not is_exact(objective):
            self.policy = outcome.policy
            outcome = self._stage(objective, members, outcome.weights, is_robust=is_robust, is_polishing=True)
        return outcome

    def _stage(
        self,
        objective: AbstractObjective,
        members: Finite,
        weights: np.ndarray,
        *,
        is_robust: bool,
        is_polishing: bool = False,
    ) -> _Outcome:
        self.num_stages += 1
        options = self.options
        dtype = jnp.float64 if is_exact(objective) else read_precision(options.precision)
        key = jax.random.fold_in(self.key, self.num_stages)
        trainer, parameters = make_trainer(
            cast(self.policy, dtype),
            objective,
            key,
            options=options,
            is_robust=is_robust,
            is_polishing=is_polishing,
        )
        given = jnp.asarray(weights, dtype=dtype)
        state = start(trainer, parameters, given)
        checkpoint = self._checkpoint(members, weights, key, is_robust=is_robust)
        if checkpoint is not None and (restored := checkpoint.load(state)) is not None:
            state, self.history = restored
        with track("polish" if is_polishing else "train", total=trainer.num_steps) as advance:
            done = 0

            def look(state: TrainingState, gaps: np.ndarray) -> None:
                nonlocal done
                record = {
                    "stage": float(self.num_stages),
                    "step": float(state.step),
                    "worst": float(gaps.max()),
                    "mean": float(weights @ gaps),
                    "best": float(state.best_score),
                    "skipped": float(state.skipped),
                }
                self.history.append(record)
                advance(int(state.step) - done, f"worst {record['worst']:.4g} mean {record['mean']:.4g}")
                done = int(state.step)
                if checkpoint is not None:
                    checkpoint.save(state, self.history)
                if self.monitor.callback is not None:
                    self.monitor.callback(record)

            state = run(trainer, state, given, on_validation=look)
        self.num_skipped += int(state.skipped)
        best = cast(trainer.policy(state.best), jnp.float64)
        mixture = np.asarray(state.best_weights, dtype=np.float64) if is_robust else np.asarray(weights)
        return _Outcome(
            policy=best,
            members=members,
            weights=mixture / mixture.sum(),
            is_converged=int(state.since_best) >= options.patience,
        )

    def _checkpoint(
        self, members: Finite, weights: np.ndarray, key: Array, *, is_robust: bool
    ) -> Checkpoint | None:
        if self.monitor.folder is None:
            return None
        owner = fingerprint(
            self.policy,
            members.systems,
            weights,
            self.horizon,
            repr(self.options),
            self.limits,
            key,
            is_robust,
        )
        return Checkpoint(pathlib.Path(self.monitor.folder) / f"{self.num_stages}.safetensors", owner)

    def judge(self, policy: AbstractPolicy, members: Finite) -> GapEstimate:
        """Gaps on noise that training never saw."""
        limits = (np.asarray(self.limits.low), np.asarray(self.limits.high))
        return gap(
            policy,
            members,
            horizon=self.horizon,
            key=jax.random.fold_in(self.key, 2**31 - 1),
            num_rollouts=self.options.receipt_rollouts,
            limits=limits,
        )

    def result(self, outcome: _Outcome) -> TrainingResult:
        """The policy with its receipt."""
        result = TrainingResult(
            policy=outcome.policy,
            members=outcome.members,
            weights=outcome.weights,
            gaps=self.judge(outcome.policy, outcome.members),
            history=tuple(self.history),
            num_skipped=self.num_skipped,
            is_converged=outcome.is_converged,
        )
        optimal = float(result.gaps.value[result.gaps.argworst])
        if not result.worst_gap < HOPELESS * optimal:
            warnings.warn(
                f"the policy loses {result.worst_gap:.3g} on {result.describe_worst()}, where the optimal "
                f"cost is {optimal:.3g}: it does not hold this plant. Start from a policy that does (a "
                f"ModelBank, or lqgap.find_stabilizer), or narrow the class",
                LqgapWarning,
                stacklevel=3,
            )
        return result


def _worse_members(task: _Task, family: AbstractFamily, outcome: _Outcome, search: int) -> Finite | None:
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
    return family.sample(jax.random.key(0), FEW_MEMBERS)


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
