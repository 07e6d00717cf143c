"""A named uncertain quantity: an interval, or a few values to choose from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lqgap.errors import InvalidArgumentError, did_you_mean


@dataclass(frozen=True)
class Parameter:
    """An interval [low, high]; with `choices`, only these values between them."""

    name: str
    low: float
    high: float
    unit: str = ""
    choices: tuple[float, ...] = ()

    def points(self, count: int) -> np.ndarray:
        """The choices, or `count` points from end to end (the middle for one)."""
        if self.choices:
            return np.asarray(self.choices)
        if count == 1 or self.low == self.high:
            return np.array([self.middle])
        return np.linspace(self.low, self.high, count)

    @property
    def middle(self) -> float:
        """The nominal value: the middle of the interval, or of the list of choices."""
        return self.choices[len(self.choices) // 2] if self.choices else 0.5 * (self.low + self.high)

    def admits(self, value: float) -> bool:
        """Whether the value is allowed, up to rounding."""
        if self.choices:
            return any(bool(abs(value - choice) <= 1e-9 * abs(choice)) for choice in self.choices)
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return bool(self.low - slack <= value <= self.high + slack)

    def __str__(self) -> str:
        if self.choices:
            extent = "{" + ", ".join(f"{choice:g}" for choice in self.choices) + "}"
        else:
            extent = f"{self.low:g} .. {self.high:g}"
        return f"{self.name} = {extent}{' ' + self.unit if self.unit else ''}"


def read_parameter(name: str, extent: Any, unit: str = "") -> Parameter:
    """A pair (low, high) is an interval, a list of values its choices."""
    wanted = "expected an interval (low, high) or a list of values [first, second, ...]"
    try:
        values = [float(value) for value in extent if not isinstance(value, str | bool)]
        is_complete = len(values) == len(extent)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"parameter {name} is {extent!r}, {wanted}") from None
    if not values or not is_complete or not np.all(np.isfinite(values)):
        raise InvalidArgumentError(f"parameter {name} is {extent!r}, {wanted}, all of them finite numbers")
    if isinstance(extent, list):
        if len(set(values)) < len(values):
            raise InvalidArgumentError(f"parameter {name} is {extent!r}: each value may be chosen once only")
        return Parameter(name, min(values), max(values), unit, choices=tuple(values))
    if len(values) != 2:
        raise InvalidArgumentError(f"parameter {name} is {extent!r}, {wanted}")
    low, high = values
    if low > high:
        raise InvalidArgumentError(
            f"parameter {name} has the interval ({low:g}, {high:g}), whose ends are the wrong way round"
        )
    return Parameter(name, low, high, unit)


def read_values(parameters: Iterable[Parameter], theta: Any) -> np.ndarray:
    """One value for each parameter, from a mapping by name or a sequence in order, within its extent."""
    parameters = tuple(parameters)
    names = [parameter.name for parameter in parameters]
    if isinstance(theta, Mapping):
        require_names(theta, names)
        theta = [theta.get(name, np.nan) for name in names]
    try:
        values = np.asarray(theta, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"theta is {theta!r}, expected numbers for {', '.join(names)}") from None
    if values.shape != (len(names),) or np.any(np.isnan(values)):
        raise InvalidArgumentError(f"theta is {theta!r}, expected one value for each of {', '.join(names)}")
    for parameter, value in zip(parameters, values, strict=True):
        if not parameter.admits(value):
            raise InvalidArgumentError(f"theta has {parameter.name} = {value:g}, outside of {parameter}")
    return values


def require_names(given: Iterable[str], names: Iterable[str]) -> None:
    """Raise for a name that is not one of the parameters, with the nearest that is."""
    names = list(names)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names)
            raise InvalidArgumentError(
                f"there is no parameter {name!r}, only {', '.join(map(str, names))}{hint}"
            )
