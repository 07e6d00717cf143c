"""How LQG-VTR learns and acts; its numbers are in `calibration`."""

from typing import Any, Literal

import equinox as eqx

from lqgap.policies.policy import require_one_of
from lqgap.policies.stake import read_probe

CHOICES = {
    "confidence": ("likelihood", "targets"),
    "plan": ("bayes", "minimax", "optimistic"),
    "alarm": ("misfit", "ball", "ball for a while", "none"),
    "selection": ("likelihood", "balanced", "printed"),
    "filters": ("exact", "steady"),
    "history": ("clipped", "full"),
    "weighting": ("variance", "equal"),
}


class VTROptions(eqx.Module):
    """The variants of the algorithm.

    Args:
        confidence: which members are still possible: those that the likelihood leaves, found anew at every
            step, or those near the estimate of value-target regression, found anew at a switch.
        plan: which of the controllers of the members is acted by: that with the smallest excess in the mean
            over the posterior ("bayes"), with the smallest worst excess over the set ("minimax"), or that of
            the member of the set with the smallest J ("optimistic").
        alarm: when another policy takes over: while the observations fit no member ("misfit"), for ever once
            the belief has left a ball ("ball"), for longer each time it does ("ball for a while"), or never.
        selection: of the members that are left by a warm-up of random inputs, if there is one: by the
            likelihood, or by Algorithm 2, in balanced coordinates or as printed, which warms up by itself.
        filters: of the members: exact from the first step on, or steady, with which likelihoods and alarms
            are right only for plants that begin in their steady state, S0 = Sigma.
        history: with value targets, what the members predict from.
        weighting: of value targets: by one over the largest variance that a possible member gives them, so
            that the radius is one of standard deviations in every loop, or equal.
        probe: what is added to the input where the controller acted on teaches too little of what is at stake
            (`policies.stake`): as much as that is worth ("auto"; nothing with value targets, which explore by
            optimism), nothing ("off"), or at most so much, a number or one for each input.
    """

    confidence: Literal["likelihood", "targets"] = eqx.field(static=True, default="likelihood")
    plan: Literal["bayes", "minimax", "optimistic"] = eqx.field(static=True, default="bayes")
    alarm: Literal["misfit", "ball", "ball for a while", "none"] = eqx.field(static=True, default="misfit")
    selection: Literal["likelihood", "balanced", "printed"] = eqx.field(static=True, default="likelihood")
    filters: Literal["exact", "steady"] = eqx.field(static=True, default="exact")
    history: Literal["clipped", "full"] = eqx.field(static=True, default="clipped")
    weighting: Literal["variance", "equal"] = eqx.field(static=True, default="variance")
    probe: Any = eqx.field(static=True, default="auto", converter=read_probe)

    @staticmethod
    def as_in_the_paper(**changes: Any) -> "VTROptions":
        """Algorithms 1 and 2: a warm-up and its set, targets of clipped histories, optimism, a halt.

        Samples are weighted, so that calibrated radii cover in every loop; `weighting="equal"` is as printed,
        and so is `selection="printed"`. With `alarm="ball for a while"` the halt is not final.
        """
        paper: dict[str, Any] = {
            "confidence": "targets",
            "plan": "optimistic",
            "alarm": "ball",
            "filters": "steady",
            "selection": "balanced",
        }
        return VTROptions(**(paper | changes))

    @property
    def probes(self) -> bool:
        """Whether it may probe."""
        return self.probe != "off" and (self.confidence == "likelihood" or self.probe != "auto")

    def __check_init__(self) -> None:
        for name, allowed in CHOICES.items():
            require_one_of(name, getattr(self, name), allowed)
