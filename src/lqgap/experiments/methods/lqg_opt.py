"""LqgOpt: optimism without a class."""

from pydantic import Field

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractUnknown


class Optimistic(AbstractUnknown):
    """Options of LqgOpt."""

    label = "LqgOpt"
    about = (
        "Identifies the plant on line, without the class, and acts by the most optimistic model's controller."
    )

    confidence: float = Field(default=0.95, gt=0, lt=1, description="of the set that it is optimistic in")

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes and the cost."""
        from lqgap.adaptive import LqgOpt

        return Made(LqgOpt(self.told(setting), confidence=self.confidence))
