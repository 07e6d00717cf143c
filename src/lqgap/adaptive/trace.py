"""What a run of a policy leaves behind: regret, and of a learner its switches, sets, figures and events.

Blocks of steps come in, are thinned by a `TraceBuilder`, and leave as a `Trace`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.policies import AbstractPolicy

MOST_SWITCHES = 1_000  # of a run that are kept, about; all are counted
DIVERGED = (
    "the outputs are a thousand times as large as without control, or the input is not a number: the run "
    "ends here, and its sums stay as they are"
)
RESUMED = "the learner is in control again"
FAULT = (
    "a sample is absurd to every model, with a probability below 1e-50, and counts as lost, as later ones "
    "will: the sensor has faults, or the state has jumped"
)


@dataclass(frozen=True)
class Switch:
    """A switch of the model acted on, with what was known at that step."""

    step: int
    theta: tuple[float, ...]  # of the model acted on from now on
    num_members: int  # of the set
    is_truth_inside: bool | None  # None if the truth is not known
    figures: Mapping[str, float]
    seconds: float  # since the start


@dataclass(frozen=True)
class Event:
    """Something that should not pass unnoticed, with advice."""

    step: int
    name: str
    message: str


@dataclass(frozen=True)
class Trace:
    """A run, thinned to some steps; sums run from step 0.

    `regret` is that of the identity, sum ||u + K xhat||^2_M with the plant's own optimum, plus
    boundary terms; `regret_by_cost` is sum (c - J), which has the same expectation and is far noisier.
    """

    steps: np.ndarray
    regret: np.ndarray
    regret_by_cost: np.ndarray
    excess: np.ndarray  # sum ||u + K xhat||^2_M
    num_members: np.ndarray | None  # None if there are no sets of members
    theta: np.ndarray  # of the model acted on; no columns if there is none
    figures: Mapping[str, np.ndarray]  # of the learner's own
    switches: tuple[Switch, ...]  # the first of them, if there are thousands
    num_switches: int
    events: tuple[Event, ...]
    is_truth_inside: bool | None  # of the sets of all steps
    diverged_at: int | None  # the step of it, if it has
    num_stopped: int  # steps of an alarm, in which another policy is in control if there is one
    is_warming: bool  # at the end: it has not begun to control
    num_faults: int  # samples that were absurd and count as lost; the first is an event
    seconds: np.ndarray  # since the start, after compilation, at the end of every block of steps

    @property
    def is_stopped(self) -> bool:
        """Whether control has ever passed to another policy."""
        return self.num_stopped > 0


class StepRecord(eqx.Module):
    """The account of one step."""

    told: Snapshot
    regret: Float[Array, ""]
    regret_by_cost: Float[Array, ""]
    excess: Float[Array, ""]
    is_inside: Bool[Array, ""]
    has_diverged: Bool[Array, ""]


class TraceBuilder:
    """Thins the blocks as they come, and makes traces of what is left."""

    def __init__(self, policy: AbstractPolicy, *, last: int, every: int, count: int, is_known: bool):
        self.last, self.every, self.count, self.is_known = last, every, count, is_known
        is_learner = isinstance(policy, AbstractLearner)
        self.reasons = policy.reasons if is_learner else ()
        self.diverged = DIVERGED + (policy.remedy if is_learner else "")
        self.has_sets = is_learner and policy.members is not None
        remarks = policy.remarks(last) if is_learner else ()
        self.rows: list[dict[str, Any]] = []
        self.switches: list[list[Switch]] = [[] for _ in range(count)]
        self.events = [[Event(0, "constants", text) for text in remarks] for _ in range(count)]
        self.status = np.zeros(count, dtype=int)
        self.num_changes = np.zeros(count, dtype=int)
        self.num_stopped = np.zeros(count, dtype=int)
        self.num_faults = np.zeros(count, dtype=int)
        self.is_warming = np.zeros(count, dtype=bool)
        self.is_inside = np.ones(count, dtype=bool)
        self.diverged_at: list[int | None] = [None] * count
        self.seconds: list[float] = []

    def add(self, first: int, steps: StepRecord, seconds: float) -> None:
        """Take in a block that begins at step `first`, of which those after the last do not count."""
        count = min(steps.regret.shape[1], self.last + 1 - first)
        steps = jax.tree.map(lambda leaf: leaf[:, :count], steps)
        told, at, is_live = steps.told, first + np.arange(count), ~np.asarray(steps.has_diverged)
        self.seconds.append(seconds)
        self.num_stopped += np.sum((told.status != 0) & is_live, axis=1)
        self.is_warming = told.is_warming[:, -1]
        self.is_inside &= np.all(steps.is_inside, axis=1)
        self._note_switches(steps, first, seconds)
        self._note_events(told, first, is_live)
        self._note_faults(np.asarray(told.is_fault) & is_live, first)
        self._note_divergence(steps, first)
        kept = np.flatnonzero((at % self.every == 0) | (at == self.last))
        self.rows.append(
            {
                "steps": np.broadcast_to(at[kept], (self.count, len(kept))),
                "regret": steps.regret[:, kept],
                "regret_by_cost": steps.regret_by_cost[:, kept],
                "excess": steps.excess[:, kept],
                "num_members": told.plausible[:, kept].sum(axis=2),
                "theta": told.acts_on[:, kept],
                **{f"figure {name}": value[:, kept] for name, value in told.figures.items()},
            }
        )

    def traces(self) -> list[Trace]:
        """One for each run."""
        columns = {name: np.concatenate([row[name] for row in self.rows], axis=1) for name in self.rows[0]}
        figures = [name for name in columns if name.startswith("figure ")]
        sums = ("steps", "regret", "regret_by_cost", "excess", "theta")
        return [
            Trace(
                **{name: columns[name][number].copy() for name in sums},
                num_members=columns["num_members"][number].copy() if self.has_sets else None,
                figures={name.removeprefix("figure "): columns[name][number].copy() for name in figures},
                switches=tuple(self.switches[number]),
                num_switches=int(self.num_changes[number]),
                events=tuple(sorted(self.events[number], key=lambda event: event.step)),
                is_truth_inside=bool(self.is_inside[number]) if self.is_known else None,
                diverged_at=self.diverged_at[number],
                num_stopped=int(self.num_stopped[number]),
                is_warming=bool(self.is_warming[number]),
                num_faults=int(self.num_faults[number]),
                seconds=np.asarray(self.seconds),
            )
            for number in range(self.count)
        ]

    def _note_switches(self, steps: StepRecord, first: int, seconds: float) -> None:
        told, before = steps.told, self.num_changes[:, None]
        changes = np.maximum.accumulate(np.where(steps.has_diverged, before, told.num_changes), axis=1)
        is_switch = np.diff(changes, axis=1, prepend=before) > 0
        self.num_changes = changes[:, -1]
        is_switch &= np.asarray([len(kept) < MOST_SWITCHES for kept in self.switches])[:, None]
        for number, index in zip(*map(np.ndarray.tolist, np.nonzero(is_switch)), strict=True):
            switch = Switch(
                step=first + index,
                theta=tuple(map(float, told.acts_on[number, index])),
                num_members=int(told.plausible[number, index].sum()),
                is_truth_inside=bool(steps.is_inside[number, index]) if self.is_known else None,
                figures={name: float(value[number, index]) for name, value in told.figures.items()},
                seconds=seconds,
            )
            self.switches[number].append(switch)

    def _note_events(self, told: Snapshot, first: int, is_live: np.ndarray) -> None:
        is_new = (np.diff(told.status, axis=1, prepend=self.status[:, None]) != 0) & is_live
        self.status = told.status[:, -1]
        for number, index in zip(*map(np.ndarray.tolist, np.nonzero(is_new)), strict=True):
            status = int(told.status[number, index])
            name, advice = self.reasons[status - 1] if status else ("resumed", RESUMED)
            self.events[number].append(Event(first + index, name, advice))

    def _note_faults(self, is_fault: np.ndarray, first: int) -> None:
        for number in np.flatnonzero((self.num_faults == 0) & np.any(is_fault, axis=1)):
            step = first + int(np.argmax(is_fault[number]))
            self.events[number].append(Event(step, "fault", FAULT))
        self.num_faults += np.sum(is_fault, axis=1)

    def _note_divergence(self, steps: StepRecord, first: int) -> None:
        has_diverged = np.asarray(steps.has_diverged)
        for number in np.flatnonzero(has_diverged[:, -1]):
            if self.diverged_at[number] is None:
                step = first + int(np.argmax(has_diverged[number]))
                self.diverged_at[number] = step
                self.events[number].append(Event(step, "diverged", self.diverged))
