"""Thompson sampling."""

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Thompson(AbstractMethod):
    """Options of Thompson sampling: none."""

    label = "Thompson sampling"
    kind = "fixed"
    about = "Acts at every step by the controller of a member drawn by its posterior weight."
    is_default = False

    def make(self, setting: Setting) -> Made:
        """The bank of the class, led by a member that is drawn."""
        from lqgap.policies import ModelBank

        return Made(ModelBank(setting.members.systems, horizon=setting.planned, mode="thompson"))
