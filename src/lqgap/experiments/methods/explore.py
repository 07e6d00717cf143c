"""Explore, then commit, with optimism and without a class."""

from pydantic import Field

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractUnknown


class Explore(AbstractUnknown):
    """Options of explore, then commit."""

    label = "Explore, then commit"
    about = (
        "Random inputs for horizon^(2/3) steps, then for good the controller of the most optimistic model."
    )

    steps: int | None = Field(
        default=None, ge=1, le=10_000_000, examples=[200], description="of random inputs, in place of these"
    )
    confidence: float = Field(default=0.95, gt=0, lt=1, description="of the set that it is optimistic in")

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes, the cost and the horizon."""
        from lqgap.adaptive import ExploreThenCommit

        how = {"horizon": setting.horizon + 1} if self.steps is None else {"num_random": self.steps}
        return Made(ExploreThenCommit(self.told(setting), confidence=self.confidence, **how))
