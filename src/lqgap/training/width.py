"""How wide to randomise: worst gaps as the range of the simulators widens, or moves off the truth.

The real plant is some member of a family. Training sees a range of another width around another centre:

    low  = centre + shift * (high - low) / 2 - width * (high - low) / 2 ,    high likewise,

for every parameter that has an interval. Too narrow a range leaves the real plant out; too wide a one makes
randomisation spend its effort on plants that are not there. Robust training attends to the worst member of
the range however wide it is; the curve says from which width on that pays.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lqgap.arguments import ArrayLike, FloatLike, IntLike, read_array, read_count, read_key, read_positive
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation import GapEstimate, gap
from lqgap.policies import ModelBank
from lqgap.simulators import ParameterBox
from lqgap.training.options import TrainingOptions
from lqgap.training.robust import train_randomized, train_robust

NUM_REAL = 64
NUM_ROLLOUTS = 512


class WidthCurve(eqx.Module):
    """Gaps on the real plants after training on ranges of several widths."""

    widths: Float[np.ndarray, " width"]
    randomized: tuple[GapEstimate, ...]
    robust: tuple[GapEstimate, ...]

    @property
    def crossing(self) -> float | None:
        """The smallest width from which on robust training has the smaller worst gap, if there is one."""
        wins = [r.worst < d.worst for r, d in zip(self.robust, self.randomized, strict=True)]
        first = len(wins) - next((i for i, won in enumerate(reversed(wins)) if not won), len(wins))
        return float(self.widths[first]) if first < len(wins) else None

    def to_json(self) -> dict[str, Any]:
        """The curve as plain values."""
        return {
            "widths": self.widths.tolist(),
            "randomized_worst": [estimate.worst for estimate in self.randomized],
            "robust_worst": [estimate.worst for estimate in self.robust],
            "randomized_mean": [estimate.average for estimate in self.randomized],
            "robust_mean": [estimate.average for estimate in self.robust],
            "crossing": self.crossing,
        }


def gap_versus_width(
    family: ParameterBox,
    widths: ArrayLike,
    *,
    horizon: IntLike,
    key: PRNGKeyArray,
    shift: FloatLike = 0.0,
    points: IntLike = 3,
    options: TrainingOptions | None = None,
) -> WidthCurve:
    """Train banks both ways on ranges of several widths; evaluate them on plants drawn from the family.

    Args:
        family: what the real plant may be.
        widths: of the ranges of training, relative to the family's.
        shift: of their centre, in halves of the family's range.
        points: of the grid of each range along each parameter.
    """
    key_real, key_train, key_fresh = jax.random.split(read_key(key), 3)
    widths = np.asarray(read_array("widths", widths, num_axes=1))
    points = read_count("points", points, least=1)
    real = family.sample(NUM_REAL, key=key_real, replace=True)
    curves: dict[Any, list[GapEstimate]] = {train_randomized: [], train_robust: []}
    for width in widths:
        members = resize(family, float(width), shift=shift).grid(points)
        for train, estimates in curves.items():
            bank = ModelBank(members.systems, horizon=horizon)
            result = train(bank, members, horizon=horizon, key=key_train, options=options)
            estimates.append(
                gap(result.policy, real, horizon=horizon, key=key_fresh, num_rollouts=NUM_ROLLOUTS)
            )
    return WidthCurve(widths, tuple(curves[train_randomized]), tuple(curves[train_robust]))


def resize(family: ParameterBox, width: FloatLike, *, shift: FloatLike = 0.0) -> ParameterBox:
    """The family with its intervals made wider or narrower, and moved; choices stay unchanged."""
    if not isinstance(family, ParameterBox):
        raise InvalidArgumentError(f"family is a {type(family).__name__}, expected a ParameterBox")
    width, shift = read_positive("width", width), float(read_array("shift", shift, num_axes=0))
    extents: dict[str, Any] = {}
    for parameter in family.parameters:
        if parameter.choices:
            extents[parameter.name] = list(parameter.choices)
            continue
        half = (parameter.high - parameter.low) / 2
        centre = (parameter.high + parameter.low) / 2 + shift * half
        extents[parameter.name] = (centre - width * half, centre + width * half)
    units = {parameter.name: parameter.unit for parameter in family.parameters}
    return ParameterBox(family.function, extents, units=units, signals=family.signals)
