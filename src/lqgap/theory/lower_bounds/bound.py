"""What every kind of lower bound is: a number below the worst gap of every policy on a class,

    max over members of Gap_i(policy) >= value ,    policies adaptive, nonlinear and randomised ones included.

A class contains its subsets, so the bound of a pair of members holds for all of it.
"""

import abc
import itertools
from typing import ClassVar, Literal

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from lqgap.evaluation.reference import Reference
from lqgap.systems import LQG


class Members(eqx.Module):
    """Two or more members of a class, and their references over a horizon."""

    systems: LQG
    references: Reference

    def __len__(self) -> int:
        return len(self.systems.A)

    @property
    def pairs(self) -> Int[np.ndarray, "pair two"]:
        """Every pair once, the smaller number first."""
        return np.asarray(list(itertools.combinations(range(len(self)), 2)))


class Found(eqx.Module):
    """A lower bound, the prior over the members and the number of first steps that it rests on."""

    value: float
    prior: Float[np.ndarray, " member"]
    num_steps: int


class PairBound(eqx.Module):
    """For every pair, a number below every policy's larger gap, and how many steps it rests on."""

    value: Float[np.ndarray, " pair"]
    num_steps: Int[np.ndarray, " pair"]

    def best(self, pairs: Int[np.ndarray, "pair two"], *, num_members: int) -> Found:
        """The largest bound of the pairs, with an even prior on the two."""
        row = int(np.argmax(self.value))
        return Found(
            float(self.value[row]),
            spread_prior([0.5, 0.5], pairs[row], num_members),
            int(self.num_steps[row]),
        )


class AbstractLowerBound(eqx.Module):
    """One kind of lower bound; a new one is a module with such a class, and its entry in `minimax.BOUNDS`."""

    kind: ClassVar[str]

    @abc.abstractmethod
    def applies(self, members: Members) -> bool:
        """Whether there is a bound of this kind, and it can be computed."""

    @abc.abstractmethod
    def bound(self, members: Members) -> Found:
        """The largest bound of this kind that was found."""


class LowerBound(eqx.Module):
    """No policy whatever has a smaller worst gap over a finite class than `value`: proved, up to rounding.

    It rests on the first `num_steps` steps, and on a prior over the members, of which `pair` are the two
    heaviest. `by_kind` has the largest bound of every kind that was tried.
    """

    over: ClassVar[Literal["class"]] = "class"
    confidence: ClassVar[float] = 1.0

    value: float
    kind: str = eqx.field(static=True)
    pair: tuple[int, int] = eqx.field(static=True)
    prior: Float[np.ndarray, " member"]
    num_steps: int = eqx.field(static=True)
    by_kind: dict[str, float]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it may be far below the best possible."""
        return (f"it rests on the first {self.num_steps} steps alone: later ones may cost any policy more",)


def spread_prior(weights: object, rows: object, num_members: int) -> Float[np.ndarray, " member"]:
    """A prior on some members, as one on all of them."""
    prior = np.zeros(num_members)
    prior[np.asarray(rows)] = np.asarray(weights)
    return prior
