"""AdaptOn: disturbance response control whose operator is identified anew."""

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractResponse


class Adapting(AbstractResponse):
    """Options of AdaptOn."""

    label = "AdaptOn"
    about = "Inputs learned on the disturbances of a model that is identified anew, without the class."

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes and the cost."""
        from lqgap.adaptive import AdaptOn

        return Made(AdaptOn(self.told(setting), memory=self.memory, update=self.update))
