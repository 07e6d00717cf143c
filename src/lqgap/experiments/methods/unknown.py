"""What methods share that identify the plant while they control it, told no more than sizes and the cost."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Setting
from lqgap.experiments.record import Kind

if TYPE_CHECKING:
    from lqgap.adaptive import UnknownPlant
else:
    UnknownPlant = Any


class AbstractUnknown(AbstractMethod):
    """Options that they have in common."""

    kind: ClassVar[Kind] = "adaptive"
    is_default: ClassVar[bool] = False
    num_climbs: ClassVar[int] = 1  # a run is longer work than a rollout

    window: int | None = Field(
        default=None,
        ge=2,
        le=60,
        examples=[12],
        description="lags of the regression, in place of what the class needs",
    )
    excitation: float = Field(
        default=0.3, gt=0, description="size of random inputs, relative to the cost without input"
    )
    runs: int = Field(default=8, ge=2, le=10_000, description="of each plant that it is judged by")

    def told(self, setting: Setting) -> UnknownPlant:
        """What is told of the plant."""
        from lqgap.adaptive import UnknownPlant

        how = {} if self.window is None else {"window": self.window}
        return UnknownPlant.like(setting.members, excitation=self.excitation, **how)

    def num_rollouts(self, asked: int) -> int:  # noqa: ARG002
        """Their own number of runs."""
        return self.runs


class AbstractResponse(AbstractUnknown):
    """Options of those that learn inputs on disturbances."""

    memory: int = Field(default=10, ge=1, le=200, description="how many disturbances count")
    update: Literal["newton", "gradient", "strong gradient"] = Field(
        default="newton",
        description='or "gradient" or "strong gradient": steps that fall like 1/sqrt(t) or 1/t',
    )
