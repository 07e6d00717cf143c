"""Certainty equivalence over the class."""

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Certainty(AbstractMethod):
    """Options of certainty equivalence."""

    label = "Certainty equivalence"
    kind = "adaptive"
    about = "Acts by the member that was likeliest at the last refit: at doubling times, and when refuted."
    is_default = False

    probing: float = Field(
        default=0.0, ge=0, description="size of a decaying probing term, 0.3 costs 9 % of J at the first step"
    )
    refutes: bool = Field(
        default=True, description="whether to refit at once when the likelihood refutes the member acted on"
    )

    def make(self, setting: Setting) -> Made:
        """The learner over the class."""
        from lqgap.adaptive import CertaintyEquivalence
        from lqgap.adaptive.over_class.candidates import DELTA

        delta = DELTA if self.refutes else None
        return Made(
            CertaintyEquivalence(setting.members, probing=self.probing, delta=delta, horizon=setting.planned)
        )
