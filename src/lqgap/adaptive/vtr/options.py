"""The variants of LQG-VTR: each an ablation of one idea."""

from typing import Any, Literal

import equinox as eqx

from lqgap.arguments import read_count
from lqgap.errors import InvalidArgumentError

CHOICES = {
    "history": ("clipped", "full"),
    "weighting": ("equal", "variance"),
    "confidence": ("targets", "likelihood"),
}


class VTROptions(eqx.Module):
    """How LQG-VTR is run.

    Args:
        history: what members predict from: the last `length` steps, or all of them.
        weighting: of samples in the regression: equally, or by 1 / Var of the target under the model acted
            on, given the past.
        confidence: what makes the set: value targets, or the likelihood.
        buffer_size: how many samples are buffered before the exact score is taken; 0 takes it at every step.
            The switches are the same.
        stops_on_misfit: whether control passes to the fallback when the observations fit no member.
    """

    history: Literal["clipped", "full"] = eqx.field(static=True, default="clipped")
    weighting: Literal["equal", "variance"] = eqx.field(static=True, default="equal")
    confidence: Literal["targets", "likelihood"] = eqx.field(static=True, default="targets")
    buffer_size: int = eqx.field(static=True, default=64)
    stops_on_misfit: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value: Any = getattr(self, name)
            if value not in allowed:
                raise InvalidArgumentError(
                    f"{name} is {value!r}, expected one of {', '.join(map(repr, allowed))}"
                )
        read_count("buffer_size", self.buffer_size, least=0)
