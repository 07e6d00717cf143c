"""What a run of an adaptive algorithm leaves behind: regret, switches, sets, events.

Blocks of steps come in, are thinned by an `TraceBuilder`, and leave as a `Trace`.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.adaptive.vtr.state import LEFT_BALL, MISFIT, RUNNING, VTRInfo
from lqgap.batches import take

ADVICE = {
    LEFT_BALL: "the belief of the model acted on left the ball of radius state_bound: the model is wrong by "
    "much, or the bound too small; the fallback is in control from here on",
    MISFIT: "the innovations fit no member of the class: the plant lies outside of it, or has changed; widen "
    "the family or check the units; the fallback is in control from here on",
}
NAMES = {LEFT_BALL: "halt", MISFIT: "misfit"}


@dataclass(frozen=True)
class Switch:
    """A switch of the model acted on, with what was known at that step."""

    step: int
    theta: tuple[float, ...]  # of the model acted on from now on
    J: float  # of that model: the optimistic promise
    estimate: tuple[float, ...]
    num_members: int  # of the set
    is_truth_inside: bool | None  # None if the truth is not known
    score: float
    clip_error: float
    clip_bound: float
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
    num_members: np.ndarray
    clip_error: np.ndarray  # the largest since the step before
    clip_bound: np.ndarray
    misfit: np.ndarray
    switches: tuple[Switch, ...]
    events: tuple[Event, ...]
    is_truth_inside: bool | None  # of the sets of all switches
    num_lost: int
    seconds: np.ndarray  # since the start, after compilation, at the end of every block of steps

    @property
    def is_stopped(self) -> bool:
        """Whether control has passed to the fallback."""
        return any(event.name in NAMES.values() for event in self.events)


class StepRecord(eqx.Module):
    """The account of one step."""

    info: VTRInfo
    regret: Float[Array, ""]
    regret_by_cost: Float[Array, ""]
    excess: Float[Array, ""]
    is_inside: Bool[Array, ""]


class TraceBuilder:
    """Thins the blocks as they come, and makes traces of what is left."""

    def __init__(self, remarks: tuple[str, ...], *, last: int, every: int, count: int, is_known: bool):
        self.last, self.every, self.count, self.is_known = last, every, count, is_known
        self.rows: list[dict[str, Any]] = []
        self.switches: list[list[Switch]] = [[] for _ in range(count)]
        self.events = [[Event(0, "constants", text) for text in remarks] for _ in range(count)]
        self.worst_clip = np.zeros(count)
        self.status = np.full(count, RUNNING)
        self.num_lost = np.zeros(count, dtype=int)
        self.seconds: list[float] = []

    def add(self, first: int, steps: StepRecord, seconds: float) -> None:
        """Take in a block that begins at step `first`, of which those after the last do not count."""
        count = min(steps.regret.shape[1], self.last + 1 - first)
        steps = jax.tree.map(lambda leaf: leaf[:, :count], steps)
        info, at = steps.info, first + np.arange(count)
        for number, index in zip(*np.nonzero(info.is_switch), strict=True):
            self.switches[number].append(self._switch(steps, int(number), int(index), first, seconds))
        self._note_events(info, first)
        self.seconds.append(seconds)
        self.num_lost += info.is_lost.sum(axis=1)
        # The largest clip error between two points of the trace, whichever block it falls into.
        errors = np.nan_to_num(info.clip_error)
        kept = np.flatnonzero((at % self.every == 0) | (at == self.last))
        edges = np.concatenate([[0], kept + 1])
        spans = [errors[:, a:b].max(axis=1) for a, b in itertools.pairwise(edges)]
        if spans:
            spans[0] = np.maximum(spans[0], self.worst_clip)
            self.worst_clip = errors[:, edges[-1] :].max(axis=1, initial=0.0)
        else:
            self.worst_clip = np.maximum(self.worst_clip, errors.max(axis=1))
        self.rows.append(
            {
                "steps": np.broadcast_to(at[kept], (self.count, len(kept))),
                "regret": steps.regret[:, kept],
                "regret_by_cost": steps.regret_by_cost[:, kept],
                "excess": steps.excess[:, kept],
                "num_members": info.choice.members[:, kept].sum(axis=2),
                "clip_error": np.stack(spans, axis=1) if spans else np.zeros((self.count, 0)),
                "clip_bound": info.clip_bound[:, kept],
                "misfit": info.misfit[:, kept],
            }
        )

    def traces(self) -> list[Trace]:
        """One for each run."""
        columns = {name: np.concatenate([row[name] for row in self.rows], axis=1) for name in self.rows[0]}
        return [
            Trace(
                **{name: column[number].copy() for name, column in columns.items()},
                switches=tuple(self.switches[number]),
                events=tuple(sorted(self.events[number], key=lambda event: event.step)),
                is_truth_inside=all(s.is_truth_inside for s in self.switches[number])
                if self.is_known
                else None,
                num_lost=int(self.num_lost[number]),
                seconds=np.asarray(self.seconds),
            )
            for number in range(self.count)
        ]

    def _switch(self, steps: StepRecord, number: int, index: int, first: int, seconds: float) -> Switch:
        info = take(take(steps.info, number), index)
        return Switch(
            step=first + index,
            theta=tuple(map(float, info.theta)),
            J=float(info.J),
            estimate=tuple(map(float, info.choice.theta_estimate)),
            num_members=int(info.choice.members.sum()),
            is_truth_inside=bool(steps.is_inside[number, index]) if self.is_known else None,
            score=float(info.choice.score),
            clip_error=float(info.clip_error),
            clip_bound=float(info.clip_bound),
            seconds=seconds,
        )

    def _note_events(self, info: VTRInfo, first: int) -> None:
        for number in range(self.count):
            if self.status[number] != RUNNING:
                continue
            stopped = np.flatnonzero(info.status[number] != RUNNING)
            if len(stopped):
                self.status[number] = reason = int(info.status[number, stopped[0]])
                event = Event(first + int(stopped[0]), NAMES[reason], ADVICE[reason])
                self.events[number].append(event)
