"""Disturbance response control with an operator that is identified first."""

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractResponse


class Disturbance(AbstractResponse):
    """Options of disturbance response control."""

    label = "Disturbance response"
    about = "Random inputs for horizon^(2/3) steps, then inputs learned on the disturbances of one model."

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes, the cost and the horizon."""
        from lqgap.adaptive import IdentifiedDisturbanceResponse

        return Made(
            IdentifiedDisturbanceResponse(
                self.told(setting), horizon=setting.horizon + 1, memory=self.memory, update=self.update
            )
        )
