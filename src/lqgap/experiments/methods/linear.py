"""One linear controller for all members."""

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Linear(AbstractMethod):
    """Options of the robust linear controller: none."""

    label = "Robust linear controller"
    kind = "fixed"
    about = (
        "One linear controller that stabilises all members, with a small worst average cost; it does not "
        "adapt."
    )

    def make(self, setting: Setting) -> Made:
        """The stabiliser of the class."""
        from lqgap.training import find_stabilizer

        return Made(find_stabilizer(setting.members))
