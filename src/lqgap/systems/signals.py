"""What the signals of a plant are outside of its equations: when sampled, what called, how limited.

A plant is linear about an operating point (x0, u0, y0), from which its x, u and y are deviations. Limits and
rates are those of the real input u0 + u, in the units of that input and of time.
"""

import dataclasses
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lqgap.errors import InvalidArgumentError

TEXTS = ("time_unit", "inputs", "outputs")


@dataclass(frozen=True)
class Signals:
    """Sampling time, names, limits and operating point of a plant or a family; empty where not known.

    Args:
        dt: time of a step, in units of `time_unit`.
        inputs, outputs: a name for each, with its unit: "voltage [V]".
        limits: of every input: (low, high), a number for plus and minus that, or a pair for each.
        rate_limits: the largest change of an input per unit of time: a number, or one for each.
        x0, u0, y0: the operating point; zero where left out.
    """

    dt: float | None = None
    time_unit: str = "s"
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    limits: Any = ()
    rate_limits: Any = ()
    x0: Any = ()
    u0: Any = ()
    y0: Any = ()

    def __post_init__(self):
        if self.dt is not None and not (_is_number(self.dt) and 0 < self.dt < math.inf):
            raise InvalidArgumentError(f"dt is {self.dt!r}, expected a positive number")
        if self.dt is None and self.rate_limits != ():
            raise InvalidArgumentError("rate_limits are changes per unit of time, and dt is not known")
        for field in dataclasses.fields(self):  # a static field of families, which must have a hash
            value, kind = _freeze(getattr(self, field.name)), str if field.name in TEXTS else float
            is_left_out = value is None and field.name == "dt"
            if not is_left_out and not all(isinstance(leaf, kind) for leaf in _leaves(value)):
                what = "texts" if kind is str else "numbers"
                raise InvalidArgumentError(f"{field.name} is {value!r:.100}, expected {what}")
            object.__setattr__(self, field.name, value)

    def of_size(self, *, num_inputs: int, num_outputs: int) -> "Signals":
        """The same with a pair of limits and a rate for every input; raises where sizes do not fit."""
        sizes = {"inputs": num_inputs, "u0": num_inputs, "outputs": num_outputs, "y0": num_outputs}
        for name, size in sizes.items():
            if (given := getattr(self, name)) and len(given) != size:
                raise InvalidArgumentError(f"{name} is {list(given)}, expected {size}, one for each")
        limits, rates = _pairs(self.limits, num_inputs), _rates(self.rate_limits, num_inputs)
        for (low, high), u in zip(limits, self.u0 or (0.0,) * num_inputs, strict=False):
            if not low <= u <= high:
                raise InvalidArgumentError(f"limits are {low:g} .. {high:g}, and do not admit u0 = {u:g}")
        return dataclasses.replace(self, limits=limits, rate_limits=rates)

    def bounds(self, *, num_inputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(low, high, rate) of the deviations u, a rate being the change in a step; None without limits."""
        if self.limits == self.rate_limits == ():
            return None
        free = ((-math.inf, math.inf),) * num_inputs
        low, high = (
            np.array(_pairs(self.limits, num_inputs) or free) - np.reshape(self.u0 or 0.0, (-1, 1))
        ).T
        rate = np.array(_rates(self.rate_limits, num_inputs) or [math.inf] * num_inputs) * (self.dt or 1.0)
        return low, high, rate


def _freeze(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    return float(value) if _is_number(value) else value


def _leaves(value: Any) -> list[Any]:
    """The entries of nested tuples, or a value alone."""
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _pairs(limits: Any, size: int) -> tuple[tuple[float, float], ...]:
    """Limits as a pair for each input; none if there are none."""
    pairs: Any = (-limits, limits) if _is_number(limits) else limits
    pairs = (pairs,) * size if _is_interval(pairs) else pairs
    if pairs and not (len(pairs) == size and all(map(_is_interval, pairs))):
        raise InvalidArgumentError(
            f"limits is {limits!r}, expected a positive number, (low, high) with low < high, or such a pair "
            f"for each of {size} inputs"
        )
    return pairs


def _rates(rates: Any, size: int) -> tuple[float, ...]:
    values: Any = (rates,) * size if _is_number(rates) else rates
    if values and not (len(values) == size and all(_is_number(rate) and rate > 0 for rate in values)):
        raise InvalidArgumentError(f"rate_limits is {rates!r}, expected a positive number, or {size} of them")
    return values


def _is_interval(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and all(map(_is_number, pair)) and pair[0] < pair[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
