"""The account of a run: blocks of steps come in, are thinned, and leave as traces."""

import itertools
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from lqgap.adaptive.memory import RUNNING, Info
from lqgap.adaptive.trace import ADVICE, NAMES, Event, Switch, Trace


class Step(eqx.Module):
    """The account of one step."""

    info: Info
    regret: Float[Array, ""]
    regret_by_cost: Float[Array, ""]
    excess: Float[Array, ""]
    is_inside: Bool[Array, ""]


class Account:
    """Thins the blocks as they come, and makes traces of what is left."""

    def __init__(self, remarks: tuple[str, ...], *, last: int, every: int, count: int):
        self.last, self.every, self.count = last, every, count
        self.rows: list[dict[str, Any]] = []
        self.switches: list[list[Switch]] = [[] for _ in range(count)]
        self.events = [[Event(0, "constants", text) for text in remarks] for _ in range(count)]
        self.worst_clip = np.zeros(count)
        self.status = np.full(count, RUNNING)
        self.num_lost = np.zeros(count, dtype=int)

    def add(self, first: int, steps: Step, seconds: float) -> None:
        """Take in a block that begins at step `first`, of which those after the last do not count."""
        count = min(steps.regret.shape[1], self.last + 1 - first)
        steps = jax.tree.map(lambda leaf: leaf[:, :count], steps)
        info, at = steps.info, first + np.arange(count)
        for number, index in zip(*np.nonzero(info.is_switch), strict=True):
            self.switches[number].append(self._switch(steps, int(number), int(index), first, seconds))
        self._note_events(info, first)
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

    def traces(self, *, is_known: bool, seconds: float) -> list[Trace]:
        """One for each run."""
        columns = {name: np.concatenate([row[name] for row in self.rows], axis=1) for name in self.rows[0]}
        return [
            Trace(
                **{name: column[number].copy() for name, column in columns.items()},
                switches=tuple(self.switches[number]),
                events=tuple(sorted(self.events[number], key=lambda event: event.step)),
                is_truth_inside=all(s.is_truth_inside for s in self.switches[number]) if is_known else None,
                num_lost=int(self.num_lost[number]),
                seconds=seconds,
            )
            for number in range(self.count)
        ]

    def _switch(self, steps: Step, number: int, index: int, first: int, seconds: float) -> Switch:
        info = jax.tree.map(lambda leaf: leaf[number, index], steps.info)
        return Switch(
            step=first + index,
            theta=tuple(map(float, info.theta)),
            J=float(info.J),
            estimate=tuple(map(float, info.choice.theta_estimate)),
            num_members=int(info.choice.members.sum()),
            is_truth_inside=bool(steps.is_inside[number, index]),
            score=float(info.choice.score),
            clip_error=float(info.clip_error),
            clip_bound=float(info.clip_bound),
            seconds=seconds,
        )

    def _note_events(self, info: Info, first: int) -> None:
        for number in range(self.count):
            if self.status[number] != RUNNING:
                continue
            stopped = np.flatnonzero(info.status[number] != RUNNING)
            if len(stopped):
                self.status[number] = reason = int(info.status[number, stopped[0]])
                event = Event(first + int(stopped[0]), NAMES[reason], ADVICE[reason])
                self.events[number].append(event)
