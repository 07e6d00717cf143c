"""Certainty equivalence without a class."""

from pydantic import Field

from lqgap.experiments.methods.base import Made, Setting
from lqgap.experiments.methods.unknown import AbstractUnknown


class Identified(AbstractUnknown):
    """Options of certainty equivalence with an identified model."""

    label = "Identified model"
    about = "Identifies the plant on line, without the class, and acts by the likeliest model's controller."

    probing: float = Field(default=0.0, ge=0, description="size of a probe that decays, relative to the cost")

    def make(self, setting: Setting) -> Made:
        """The learner, told sizes and the cost."""
        from lqgap.adaptive import IdentifiedCertaintyEquivalence

        return Made(IdentifiedCertaintyEquivalence(self.told(setting), probing=self.probing))
