"""The optimal controller of the middle."""

from lqgap.errors import LqgapError
from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Nominal(AbstractMethod):
    """Options of the nominal controller: none."""

    label = "Nominal LQG"
    kind = "fixed"
    about = "The optimal controller of the plant in the middle of the ranges."

    def make(self, setting: Setting) -> Made:
        """The stationary controller of the middle of a family, or of the member in the middle of a class."""
        from lqgap.experiments.plants import control_optimally
        from lqgap.simulators import Finite

        family = setting.family
        if isinstance(family, Finite):
            middle = len(family) // 2
            plant, name = family[middle], family.describe(middle)
        else:
            plant = family.nominal()
            name = ", ".join(f"{each.name} = {each.middle:.6g}" for each in family.parameters)
        try:
            return Made(control_optimally(plant))
        except LqgapError as error:
            raise type(error)(f"the plant in the middle, {name}: {error}") from None
