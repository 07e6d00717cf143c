"""What a run of an adaptive algorithm leaves behind: regret, switches, sets, events."""

from dataclasses import dataclass

import numpy as np

from lqgap.adaptive.memory import LEFT_BALL, MISFIT

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
    J: float  # of the same: the optimistic promise
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

    `regret` is that of the identity, sum ||u + K xhat||^2_M with the plant's own optimum and what begins and
    ends it; `regret_by_cost` is sum (c - J), which has the same mean and is far noisier.
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
    seconds: float  # after compilation

    @property
    def is_stopped(self) -> bool:
        """Whether control has passed to the fallback."""
        return any(event.name in NAMES.values() for event in self.events)
