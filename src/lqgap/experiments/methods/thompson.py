"""Thompson sampling."""

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Thompson(AbstractMethod):
    """Options of Thompson sampling."""

    label = "Thompson sampling"
    kind = "adaptive"
    about = "Acts by the controller of a member drawn by its posterior weight."
    is_default = False

    lazy: bool = Field(default=False, description="whether a member is kept until the weights have moved")

    def make(self, setting: Setting) -> Made:
        """The learner over the class."""
        from lqgap.adaptive import ThompsonSampling

        return Made(ThompsonSampling(setting.members, lazy=self.lazy, horizon=setting.planned))
