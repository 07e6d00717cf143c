"""What a method is: the table of its options in a study, what people read of it, and how its policy is made.

A new method is a file beside this one and a line of `METHODS`; reading, judging, showing and running it
follow. Studies are read without JAX: what makes a policy is imported where it is made.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from lqgap.experiments.record import Kind

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

    from lqgap.policies import AbstractPolicy
    from lqgap.simulators import AbstractFamily, Finite
    from lqgap.systems import LQG

    Family = AbstractFamily | Finite
else:
    AbstractPolicy = Family = Finite = LQG = PRNGKeyArray = Any


class Table(BaseModel):
    """A table of a study file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Setting:
    """What a policy is made for: the family, the class, and a task over steps 0..horizon."""

    family: Family
    members: Finite
    horizon: int
    ends: bool
    key: PRNGKeyArray
    checkpoints: Path | None  # where training leaves what it needs to go on
    limits: Any = None  # of inputs, as `lqgap.policies.limits` reads them
    probe: Any = "auto"  # as `lqgap.policies.stake` reads it

    @property
    def planned(self) -> int | None:
        """The horizon of plans: in a task that goes on there are none."""
        return self.horizon if self.ends else None


@dataclass(frozen=True)
class Knowing:
    """In the place of a policy, the optimal one of the plant that it is put on: no policy can know it.

    Args:
        horizon: of a task that ends.
        limits: of inputs; it does not know of them, as the reference of gaps does not.
    """

    horizon: int | None
    limits: Any = None

    def on(self, plant: LQG) -> AbstractPolicy:
        """What it does on a plant."""
        from lqgap.experiments.plants import control_optimally
        from lqgap.policies import FiniteHorizonLQG, Saturated

        best = control_optimally(plant) if self.horizon is None else FiniteHorizonLQG(plant, self.horizon)
        return best if self.limits is None else Saturated(best, self.limits)


@dataclass(frozen=True)
class Made:
    """A policy, and how its training went."""

    policy: AbstractPolicy | Knowing
    history: tuple[Mapping[str, float], ...] = ()
    has_improved: bool = True


class AbstractMethod(Table):
    """A method with its options, which are the keys of its table."""

    label: ClassVar[str]
    kind: ClassVar[Kind]
    about: ClassVar[str]
    is_default: ClassVar[bool] = True  # whether a study that names no methods has it
    num_climbs: ClassVar[int] = 8  # of the search for its worst plant

    @abc.abstractmethod
    def make(self, setting: Setting) -> Made:
        """The policy; training is taken up where it was left."""

    def num_rollouts(self, asked: int) -> int:
        """How many rollouts of each plant it is judged by, if the study asks for so many."""
        return asked
