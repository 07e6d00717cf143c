"""Several plants side by side, each with its own chance and time, stepped at once in plain NumPy.

    start:  x_0 ~ N(0, S0) ,   y_0 = C x_0 + z_0
    step:   cost_t = y_t'Q y_t + u_t'R u_t ,   x_{t+1} = A x_t + B u_t + w_t ,   y_{t+1} = C x_{t+1} + z_{t+1}

The cost is that of the observation which was seen and of the input which followed, so that the steps 0..H
sum to the cost of a rollout. The chance of one plant does not depend on the others: each has a generator,
from which members and noise are drawn in blocks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from lqgap.interop.members import NUM_AHEAD, AbstractMembers, DrawnMembers, Plants

MAX_BLOCK = 256  # steps of noise drawn at a time


class Step(NamedTuple):
    """What a step of all plants did; `u` is the input they received."""

    u: Float[np.ndarray, "plant input"]
    cost: Float[np.ndarray, " plant"]
    terminated: Bool[np.ndarray, " plant"]
    truncated: Bool[np.ndarray, " plant"]


class Ensemble:
    """`count` plants for steps 0..horizon, whose inputs are clipped to [low, high]."""

    def __init__(
        self, members: AbstractMembers, examples: Plants, *, count: int, horizon: int, limits: tuple[Any, Any]
    ):
        self._members = members
        self._horizon = horizon
        self._low, self._high = limits
        self._generators: list[Any] = [None] * count
        self._drawn: list[Any] = [None] * count
        self._num_used = [NUM_AHEAD] * count  # none is left
        states, outputs = examples.dynamics.shape[1], examples.C.shape[1]
        self._plants = jax.tree.map(lambda matrices: np.zeros((count, *matrices.shape[1:])), examples)
        self._block = min(horizon + 2, MAX_BLOCK)
        self._w = np.zeros((count, self._block, states))
        self._z = np.zeros((count, self._block, outputs))
        self._rows = np.arange(count)
        self.x = np.zeros((count, states))
        self.y = np.zeros((count, outputs))
        self.time = np.zeros(count, dtype=int)
        self.member = np.full(count, -1)
        self.parameters = np.zeros((count, len(members.names)))

    def seed(self, index: int, generator: np.random.Generator) -> None:
        """Give a plant another source of chance, and forget what was drawn ahead."""
        if self._generators[index] is not generator:
            self._generators[index], self._num_used[index] = generator, NUM_AHEAD

    def start(self, which: Int[np.ndarray, " some"], fixed: Sequence[DrawnMembers] | None = None) -> None:
        """A new episode for these plants: on fixed members, or on the next that are drawn."""
        if fixed is None:
            self._draw_members([i for i in which.tolist() if self._num_used[i] == NUM_AHEAD])
        for position, index in enumerate(which.tolist()):
            if fixed is not None:
                self._begin(index, fixed[position], 0)
            else:
                self._begin(index, self._drawn[index], self._num_used[index])
                self._num_used[index] += 1
        self.time[which] = 0
        self.y[which] = _times(self._plants.C[which], self.x[which]) + self._z[which, 0]

    def step(self, u: Float[np.ndarray, "plant input"], running: Bool[np.ndarray, " plant"]) -> Step:
        """One step of the plants that are running; the others stay as they are, and their result is void."""
        w = self._w[self._rows, self.time % self._block]
        self.time += running
        position = self.time % self._block
        if not position.all():
            for index in np.flatnonzero(running & (position == 0)).tolist():
                self._draw_noise(index)
        with np.errstate(over="ignore", invalid="ignore"):
            u = np.minimum(np.maximum(u, self._low), self._high)
            cost = _quadratic(np.concatenate([self.y, u], axis=1), self._plants.cost)
            x = _times(self._plants.dynamics, np.concatenate([self.x, u], axis=1)) + w
            y = _times(self._plants.C, x) + self._z[self._rows, position]
            finite = np.isfinite(cost + x.sum(axis=1) + y.sum(axis=1))
        if not finite.all():  # the episode ends, with numbers that are still numbers
            cost, x, y = np.nan_to_num(cost), np.nan_to_num(x), np.nan_to_num(y)
        if not running.all():
            x, y = np.where(running[:, None], x, self.x), np.where(running[:, None], y, self.y)
        self.x, self.y = x, y
        return Step(u, cost, terminated=running & ~finite, truncated=running & (self.time > self._horizon))

    def _draw_members(self, which: list[int]) -> None:
        drawn = self._members.draw([self._generators[index] for index in which]) if which else []
        for index, members in zip(which, drawn, strict=True):
            self._drawn[index], self._num_used[index] = members, 0

    def _begin(self, index: int, drawn: DrawnMembers, position: int) -> None:
        """Put one of the drawn members in this place, and draw its first state and its noise."""
        ours = DrawnMembers(self._plants, self.member, self.parameters)
        for mine, theirs in zip(jax.tree.leaves(ours), jax.tree.leaves(drawn), strict=True):
            mine[index] = theirs[position]
        normal = self._generators[index].standard_normal(self.x.shape[1])
        self.x[index] = self._plants.S0_root[index] @ normal
        self._draw_noise(index)

    def _draw_noise(self, index: int) -> None:
        outputs, states = self._z.shape[2], self._w.shape[2]
        normal = self._generators[index].standard_normal((self._block, outputs + states))
        self._z[index] = normal[:, :outputs] @ self._plants.V_root[index]
        self._w[index] = normal[:, outputs:] @ self._plants.W_root[index]


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.matmul(matrices, vectors[:, :, None])[:, :, 0]


def _quadratic(vectors: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    return (vectors * _times(matrices, vectors)).sum(axis=1)
