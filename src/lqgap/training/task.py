"""One training: its rounds, stages and checkpoints, and the evaluation of what it found."""

import pathlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.arguments import read_key
from lqgap.errors import InvalidArgumentError, LqgapWarning
from lqgap.evaluation import GapEstimate, gap
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, require_fit
from lqgap.evaluation.estimate import have_light_tails
from lqgap.evaluation.gap import estimate_gaps, have_optimum, references_of
from lqgap.evaluation.worst import BATCH, WorstFound
from lqgap.files import read_path
from lqgap.policies import AbstractPolicy, ModelBank, ProbingBank
from lqgap.policies.limits import Limits, read_limits
from lqgap.policies.policy import require_policy
from lqgap.progress import is_spent, track
from lqgap.simulators import Finite
from lqgap.simulators.family import AbstractFamily
from lqgap.states import fingerprint
from lqgap.training.answer import answers, tilt_of
from lqgap.training.checkpoint import Checkpoint
from lqgap.training.engine import BY_THEN, DrawFn, Stage, TrainingState, make_trainer
from lqgap.training.objective import AbstractObjective, is_exact, make_objective, split
from lqgap.training.options import TrainingOptions
from lqgap.training.ranges import search_ranges
from lqgap.training.result import TrainingResult

HOPELESS = 100.0  # times the optimal cost: a policy that loses more does not stabilise the plant
NEGLIGIBLE = 1e-6  # times the optimal cost: there is nothing to improve
SEARCH_ROLLOUTS = 128
FRESH = 4  # times the rollouts of a validation
LEAST_USE = 0.1  # of a probe, from which policies that probe are tried
ALIKE, LONG = 0.03, 4  # relative: by so little gaps are alike, and what counts is the gap of so many horizons
GIVEN, TRAINED, PROBING = "as given", "as trained", "probing bank"  # names of what is returned

DrawMembersFn = Callable[[Array, int], Finite]  # of the members of so many updates


@dataclass(frozen=True)
class Monitor:
    """Where progress is reported to, and where the state is kept.

    Args:
        callback: called at every validation with a dictionary of numbers (step, worst, mean, best),
            for a logger of your choice.
        folder: for checkpoints; a training that was stopped goes on from there, with the same result.
    """

    callback: Callable[[dict[str, float]], None] | None = None
    folder: str | pathlib.Path | None = None

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise InvalidArgumentError(f"callback is {self.callback!r:.100}, expected a function")
        if self.folder is not None:
            read_path(self.folder)


@dataclass
class Outcome:
    """What a round of training has found."""

    policy: AbstractPolicy
    members: Finite
    weights: np.ndarray
    is_converged: bool
    is_robust: bool


class TrainingTask:
    """What all rounds of one training have in common."""

    def __init__(
        self, policy: Any, horizon: Any, key: Any, options: Any, limits: Any, monitor: Any, ends: bool
    ):
        self.horizon, self.ends = read_horizon(policy, horizon), ends
        self.policy: AbstractPolicy = policy
        self.start: AbstractPolicy = policy
        self.key: Array = read_key(key)
        self.options: TrainingOptions = options or TrainingOptions()
        self.limits: Limits = read_limits(limits, num_inputs=policy.num_inputs)
        self.monitor: Monitor = monitor or Monitor()
        self.history: list[dict[str, float]] = []
        self.num_stages = self.num_searches = self.num_skipped = 0
        self.returned, self.compared = TRAINED, dict[str, float]()

    def train(
        self, members: Finite, weights: np.ndarray, *, is_robust: bool, draw: DrawMembersFn | None = None
    ) -> Outcome:
        """One round, from the policy as it is now: by its prior alone, by pathwise derivatives, polished.

        Args:
            draw: draws the members of updates, if they are not those of the class.
        """
        begun = self.policy
        outcome = Outcome(begun, members, weights, is_converged=False, is_robust=is_robust)
        has_answered = is_robust and answers(begun, members.systems)
        outcome = answered = self.answer(outcome) if has_answered else outcome
        objective = self._objective(members)
        outcome = self._stage(objective, outcome, "descend", like=begun, draw=draw)
        if self.options.updates_of("polish", begun) and not is_exact(objective):
            outcome = self._stage(objective, outcome, "polish", like=outcome.policy, draw=draw)
        return self._better(answered, outcome) if has_answered else outcome

    def compare(
        self,
        outcome: Outcome,
        candidates: Mapping[str, AbstractPolicy] | None,
        draw: DrawMembersFn | None = None,
    ) -> Outcome:
        """The outcome, or what loses less: a candidate or, where it has a use, a trained bank that probes.

        Of those with the least gap at the horizon it is the one with the least in the long run.
        """
        if not isinstance(candidates, Mapping | None):
            raise InvalidArgumentError(f"candidates is {candidates!r:.40}, expected policies by name")
        tried, systems, bank = dict(candidates or {}), outcome.members.systems, outcome.policy
        for name, policy in tried.items():
            require_fit(require_policy(name, policy), systems)
        may_probe = self.options.probe != "off" and not is_spent(BY_THEN)
        if may_probe and isinstance(bank, ModelBank) and answers(bank, systems):
            fresh = bank.of(systems, horizon=bank.horizon)
            probing = ProbingBank(systems, bank=fresh, stop=self.horizon, probe=self.options.probe)
            if probing.use > LEAST_USE:
                self.policy = probing
                how = {"is_robust": outcome.is_robust, "draw": draw}
                tried[PROBING] = self.train(outcome.members, outcome.weights, **how).policy
                tried["Thompson sampling"] = ModelBank(systems, horizon=bank.horizon, mode="thompson")
        if not tried:
            return outcome
        scores = {name: self._scores(policy, outcome) for name, policy in {TRAINED: bank, **tried}.items()}
        least = min(at_end for at_end, _ in scores.values())
        alike = {name: later for name, (now, later) in scores.items() if now <= (1 + ALIKE) * least}
        self.returned = min(alike, key=alike.__getitem__)
        self.compared = {name: at_end for name, (at_end, _) in scores.items()}
        return outcome if self.returned == TRAINED else replace(outcome, policy=tried[self.returned])

    def _scores(self, policy: AbstractPolicy, outcome: Outcome) -> tuple[float, float]:
        """The worst or the mean gap at the horizon, and in the long run of a task that goes on."""
        is_bounded = self.ends or policy.horizon is not None
        horizons = [self.horizon, self.horizon * (1 if is_bounded else LONG)]
        found = estimate_gaps(
            policy,
            references_of(outcome.members.systems, horizon=horizons[-1], ends=self.ends),
            self.limits,
            horizons,
            key=jax.random.fold_in(self.key, 2**31 - 3),
            num_rollouts=self.options.validation_rollouts_for(len(outcome.members)),
        )
        gaps = [each.worst if outcome.is_robust else float(outcome.weights @ each.mean) for each in found]
        now, later = np.nan_to_num(gaps, nan=np.inf, posinf=np.inf).tolist()
        return now, later

    def answer(self, before: Outcome) -> Outcome:
        """The stage in which the prior of a bank of the members follows the adversary."""
        return self._stage(self._objective(before.members), before, "answer", like=before.policy)

    def _better(self, answered: Outcome, descended: Outcome) -> Outcome:
        """On fresh noise: after an answer derivatives find little, and the best of validations is lucky."""
        count = FRESH * self.options.validation_rollouts_for(len(answered.members))
        key = jax.random.fold_in(self.key, 2**31 - 2)
        before, after = (
            np.max(self.gaps(each.policy, each.members, key, count)) for each in (answered, descended)
        )
        return descended if after < before else answered

    def _objective(self, members: Finite) -> AbstractObjective:
        return make_objective(
            self.policy,
            members.systems,
            self.limits,
            horizon=self.horizon,
            ends=self.ends,
            dtype=read_precision(self.options.precision),
            backprop_decay=self.options.backprop_decay,
        )

    def _draws(self, draw: DrawMembersFn) -> DrawFn:
        """The objectives of updates, from the members drawn for them."""

        def objectives(step: int, count: int) -> AbstractObjective:
            key = jax.random.fold_in(jax.random.fold_in(self.key, 2**30 - self.num_stages), step)
            return split(self._objective(draw(key, count)), count)

        return objectives

    def _stage(
        self,
        objective: AbstractObjective,
        before: Outcome,
        stage: Stage,
        *,
        like: AbstractPolicy,
        draw: DrawMembersFn | None = None,
    ) -> Outcome:
        if self.num_stages and is_spent(BY_THEN):
            return before
        members, weights, is_robust = before.members, before.weights, before.is_robust
        self.num_stages += 1
        options = self.options
        dtype = _precision(objective, options)
        key = jax.random.fold_in(self.key, self.num_stages)
        trainer, parameters = make_trainer(
            cast(before.policy, dtype),
            objective,
            key,
            options=options,
            is_robust=is_robust,
            stage=stage,
            like=cast(like, dtype),
            tilt=cast(tilt_of(members.systems), dtype) if stage == "answer" else None,
        )
        given = jnp.asarray(weights, dtype=dtype)
        state = trainer.start(parameters, given)
        checkpoint = self._checkpoint(before, key)
        if checkpoint is not None and (restored := checkpoint.load(state)) is not None:
            state, self.history = restored
        with track(stage, total=trainer.num_steps) as advance:
            done = 0

            def report(state: TrainingState, gaps: np.ndarray) -> None:
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

            state = trainer.run(state, given, on_validation=report, draw=draw and self._draws(draw))
        self.num_skipped += int(state.skipped)
        best = cast(trainer.policy(state.best), jnp.float64)
        mixture = np.asarray(state.best_weights, dtype=np.float64) if is_robust else np.asarray(weights)
        return Outcome(
            policy=best,
            members=members,
            weights=mixture / mixture.sum(),
            is_converged=int(state.num_stale) >= options.patience,
            is_robust=is_robust,
        )

    def _checkpoint(self, before: Outcome, key: Array) -> Checkpoint | None:
        if self.monitor.folder is None:
            return None
        owner = fingerprint(
            before.policy,
            before.members.systems,
            before.weights,
            self.horizon,
            self.ends,
            repr(self.options),
            self.limits,
            key,
            before.is_robust,
        )
        return Checkpoint(pathlib.Path(self.monitor.folder) / f"{self.num_stages}.safetensors", owner)

    def search(self, policy: AbstractPolicy, family: AbstractFamily) -> Finite:
        """The worst members of a family that a search finds, the worst first; what it saw favours them."""
        self.num_searches += 1
        key = jax.random.fold_in(self.key, 2**30 + self.num_searches)
        return search_ranges(lambda members: self.gaps(policy, members, key, SEARCH_ROLLOUTS), family, key)

    def gaps(self, policy: AbstractPolicy, members: Finite, key: Array, num_rollouts: int) -> np.ndarray:
        """Gaps by the fast program of training; minus infinity where there is no optimum."""
        has_optimum = have_optimum(members.systems, horizon=self.horizon, ends=self.ends)
        if not np.any(has_optimum):
            return np.full(len(members), -np.inf)
        usable = np.where(has_optimum, np.arange(len(members)), np.argmax(has_optimum))
        objective = self._objective(members.subset(usable))
        found = _gaps(objective, cast(policy, _precision(objective, self.options)), key, num_rollouts)
        return np.where(has_optimum, np.asarray(found, dtype=np.float64), -np.inf)

    def judge(self, policy: AbstractPolicy, members: Finite) -> GapEstimate:
        """Gaps on noise that training never saw, by the program of a search, in batches of its size."""
        count = len(members)
        found = gap(
            policy,
            members.subset(np.minimum(np.arange(-(-count // BATCH) * BATCH), count - 1)),
            horizon=self.horizon,
            key=jax.random.fold_in(self.key, 2**31 - 1),
            num_rollouts=self.options.receipt_rollouts,
            limits=self.limits.as_given,
            ends=self.ends,
        )
        found = found.subset(np.arange(count))
        return replace(found, has_light_tail=have_light_tails(found.totals))

    def result(self, outcome: Outcome, found: Finite | None = None) -> TrainingResult:
        """The policy, with gaps on noise that training never saw.

        Args:
            found: members that a search over a family has found.
        """
        tried = [outcome.members, *([found] if found else [])]
        after, before = (
            [self.judge(policy, each) for each in tried] for policy in (outcome.policy, self.start)
        )
        scores = [
            max(each.worst for each in gaps) if outcome.is_robust else float(outcome.weights @ gaps[0].mean)
            for gaps in (after, before)
        ]
        # Validations can be mistaken, a class that grows has another bank, and ranges are more than a class.
        is_worse = scores[0] > scores[1]
        policy, gaps = (self.start, before) if is_worse else (outcome.policy, after)
        result = TrainingResult(
            policy=policy,
            members=outcome.members,
            weights=outcome.weights,
            gaps=gaps[0],
            found=WorstFound(tried[-1], gaps[-1]),
            history=tuple(self.history),
            num_skipped=self.num_skipped,
            is_converged=outcome.is_converged,
            improvement=_improvement(min(scores), scores[1]),
            returned=GIVEN if is_worse else self.returned,
            compared=tuple(self.compared.items()),
        )
        for complaint in _complaints(result):
            warnings.warn(complaint, LqgapWarning, stacklevel=3)
        return result


@eqx.filter_jit
def _gaps(objective: AbstractObjective, policy: AbstractPolicy, key: Array, num_rollouts: int) -> Array:
    return objective.gaps(policy, key, num_rollouts)


def _precision(objective: AbstractObjective, options: TrainingOptions) -> Any:
    return jnp.float64 if is_exact(objective) else read_precision(options.precision)


def _improvement(after: float, before: float) -> float:
    """1 - after / before; none where there was no gap, and all where the gap was infinite."""
    if not np.isfinite(before):
        return float(np.isfinite(after))
    return float(1 - after / before) if before > 0 else 0.0


def _complaints(result: TrainingResult) -> list[str]:
    """What is wrong with a result, for people."""
    optimal = float(result.gaps.value[result.gaps.argworst])
    where = f"the policy loses {result.worst_gap:.3g} on {result.describe_worst()}"
    complaints = []
    if not result.worst_gap < HOPELESS * optimal:
        complaints.append(
            f"{where}, where the optimal cost is {optimal:.3g}: it does not stabilise this plant. Start from "
            f'a policy that does (ModelBank or lqgap.find_stabilizer; in a study: policy = "bank"), or '
            f"narrow the ranges"
        )
    elif not result.has_improved and result.worst_gap > NEGLIGIBLE * optimal:
        complaints.append(
            f"training ended where it began ({where}): nothing better was found in "
            f"{len(result.history)} validations; {result.num_skipped} updates blew up. Train longer, with a "
            f"smaller learning_rate or more rollouts, or from another policy, if there is more to gain"
        )
    return complaints
