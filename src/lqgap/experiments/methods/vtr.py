"""LQG-VTR, which learns on the plant itself."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting

if TYPE_CHECKING:
    from lqgap.adaptive import VTROptions
else:
    VTROptions = Any


class VTR(AbstractMethod):
    """Options of LQG-VTR."""

    label = "LQG-VTR"
    kind = "adaptive"
    about = "Learns on the plant: acts by the controller that suits the members its observations leave."
    num_climbs = 1  # a run is longer work than a rollout

    preset: Literal["default", "as in the paper"] = Field(
        default="default",
        description='or "as in the paper": Algorithms 1 and 2, with a warm-up, optimism and a final halt',
    )
    plan: Literal["bayes", "minimax", "optimistic"] | None = Field(
        default=None,
        examples=["minimax"],
        description='in place of that of the preset: "bayes", "minimax" or "optimistic"',
    )
    confidence: Literal["likelihood", "targets"] | None = Field(
        default=None,
        examples=["targets"],
        description='in place of that of the preset: sets by "likelihood" or by value "targets"',
    )
    constants: Literal["calibrated", "theory"] = Field(
        default="calibrated", description='of the class, or those of the "theory", far too large to run'
    )
    delta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        examples=[0.01],
        description="probability of losing the truth: 0.05, or as in the paper 1 / horizon",
    )
    warmup: int = Field(
        default=0, ge=0, le=1_000_000, description="steps of random inputs before members are selected"
    )
    family: bool = Field(
        default=True, description="whether the real plant may lie between the members: a finer class"
    )
    runs: int = Field(default=8, ge=2, le=10_000, description="of each plant that it is judged by")

    def make(self, setting: Setting) -> Made:
        """The learner over the class, or over a finer one of the family."""
        from lqgap.adaptive import LQGVTR, calibrate, theoretical
        from lqgap.adaptive.vtr.calibration import confidence
        from lqgap.adaptive.vtr.refinement import refine
        from lqgap.simulators import AbstractFamily

        options, members, family = replace(self._options(), probe=setting.probe), setting.members, None
        if self.family and isinstance(setting.family, AbstractFamily):
            family = setting.family
            members = refine(family, members)
        if self.constants == "theory":
            constants = theoretical(members, horizon=setting.horizon)
        else:
            constants = calibrate(
                members, delta=self.delta or confidence(options, setting.horizon), options=options
            )
        constants = replace(constants, num_warmup=self.warmup or constants.num_warmup)
        given = {"horizon": setting.planned, "constants": constants, "options": options, "family": family}
        return Made(LQGVTR(members, **given))

    def num_rollouts(self, asked: int) -> int:  # noqa: ARG002
        """Its own number of runs."""
        return self.runs

    def _options(self) -> VTROptions:
        """The preset, with what is given in place of its parts."""
        from lqgap.adaptive import VTROptions

        preset = VTROptions() if self.preset == "default" else VTROptions.as_in_the_paper()
        given = {"plan": self.plan, "confidence": self.confidence}
        return replace(preset, **{name: value for name, value in given.items() if value is not None})
