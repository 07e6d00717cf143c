"""AdaptOn: disturbance response control whose operator is identified anew."""

from typing import Literal

from pydantic import Field

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractUnknown


class Adapting(AbstractUnknown):
    """Options of AdaptOn."""

    label = "AdaptOn"
    about = "Inputs learned on the disturbances of a model that is identified anew, without the class."

    memory: int = Field(default=10, ge=1, le=200, description="how many disturbances count")
    update: Literal["newton", "gradient", "strong gradient"] = Field(
        default="newton",
        description='or "gradient" or "strong gradient": steps that fall like 1/sqrt(t) or 1/t',
    )

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes and the cost."""
        from lqgap.adaptive import AdaptOn

        return Made(AdaptOn(self.told(setting), memory=self.memory, update=self.update))
