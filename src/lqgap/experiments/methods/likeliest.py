"""Certainty equivalence: the controller of the likeliest member, at every step."""

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Likeliest(AbstractMethod):
    """Options of certainty equivalence: none."""

    label = "Likeliest member"
    kind = "fixed"
    about = "Acts at every step by the controller of the member that is likeliest so far."
    is_default = False

    def make(self, setting: Setting) -> Made:
        """The bank of the class, led by its likeliest member."""
        from lqgap.policies import ModelBank

        return Made(ModelBank(setting.members.systems, horizon=setting.planned, mode="map"))
