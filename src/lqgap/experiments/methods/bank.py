"""The untrained bank."""

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Bank(AbstractMethod):
    """Options of the untrained bank: none."""

    label = "Untrained bank"
    kind = "fixed"
    about = "The controllers of all members, mixed by their posterior weights."

    def make(self, setting: Setting) -> Made:
        """The bank of the class."""
        from lqgap.policies import ModelBank

        return Made(ModelBank(setting.members.systems, horizon=setting.planned))
