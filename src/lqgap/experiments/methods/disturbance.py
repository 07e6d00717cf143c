"""Disturbance response control with an operator that is identified first."""

from typing import Literal

from pydantic import Field

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractUnknown


class Disturbance(AbstractUnknown):
    """Options of disturbance response control."""

    label = "Disturbance response"
    about = "Random inputs for horizon^(2/3) steps, then inputs learned on the disturbances of one model."

    memory: int = Field(default=10, ge=1, le=200, description="how many disturbances count")
    update: Literal["newton", "gradient", "strong gradient"] = Field(
        default="newton",
        description='or "gradient" or "strong gradient": steps that fall like 1/sqrt(t) or 1/t',
    )

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes, the cost and the horizon."""
        from lqgap.adaptive import IdentifiedDisturbanceResponse

        return Made(
            IdentifiedDisturbanceResponse(
                self.told(setting), horizon=setting.horizon + 1, memory=self.memory, update=self.update
            )
        )
