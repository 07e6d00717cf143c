"""The controller that knows the plant: the reference of all others."""

from lqgap.experiments.methods.base import AbstractMethod, Knowing, Made, Setting


class Oracle(AbstractMethod):
    """Options of the reference: none."""

    label = "LQG that knows the truth"
    kind = "reference"
    about = "The optimal controller of the real plant."

    def make(self, setting: Setting) -> Made:
        """The reference."""
        return Made(Knowing(setting.planned, setting.limits))
