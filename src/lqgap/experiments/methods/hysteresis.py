"""Supervisory switching: the likeliest member, but not at every step."""

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting


class Hysteresis(AbstractMethod):
    """Options of switching with hysteresis."""

    label = "Switching with hysteresis"
    kind = "adaptive"
    about = "Acts by a member until another one is clearly likelier, and no sooner than after a dwell time."
    is_default = False

    margin: float = Field(default=1.0, gt=0, description="log-likelihood by which another must lead")
    dwell: int = Field(default=5, ge=0, le=1_000_000, description="steps between switches")
    refutes: bool = Field(
        default=True, description="whether a member that the likelihood refutes is left before that"
    )

    def make(self, setting: Setting) -> Made:
        """A bank of filters that switches."""
        from lqgap.adaptive import FilterBank
        from lqgap.adaptive.over_class.candidates import DELTA

        return Made(
            FilterBank(
                setting.members,
                "hysteresis",
                margin=self.margin,
                dwell=self.dwell,
                delta=DELTA if self.refutes else None,
                horizon=setting.planned,
            )
        )
