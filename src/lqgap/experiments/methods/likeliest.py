"""The controller of the likeliest member, at every step."""

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Likeliest(AbstractMethod):
    """Options of the likeliest member: none."""

    label = "Likeliest member"
    kind = "adaptive"
    about = "Acts at every step by the controller of the member that is likeliest so far."
    is_default = False

    def make(self, setting: Setting) -> Made:
        """A bank of filters led by its likeliest member."""
        from lqgap.adaptive import FilterBank

        return Made(FilterBank(setting.members, "likeliest", horizon=setting.planned))
