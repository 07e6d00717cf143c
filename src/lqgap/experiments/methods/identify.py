"""Identify, then control."""

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Identify(AbstractMethod):
    """Options of random inputs for a while, then the controller of the likeliest member."""

    label = "Identify, then control"
    kind = "fixed"
    about = "Random inputs at first, then the controller of the member that explains the record best."

    probe: int = Field(default=50, ge=1, le=100_000, description="steps of random inputs")
    scale: float = Field(default=2.0, gt=0, description="their standard deviation")

    def make(self, setting: Setting) -> Made:
        """A bank that probes and commits itself."""
        from lqgap.policies import ModelBank, explore_then_commit

        bank = ModelBank(setting.members.systems, horizon=setting.planned)
        return Made(explore_then_commit(bank, self.probe, scale=self.scale))
