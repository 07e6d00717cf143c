"""Physical quantities as users give them, and the family that the uncertain ones span.

A quantity is a number if it is known, a pair (low, high) if it lies between, a list if it is one of a few.
"""

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lqgap.errors import InvalidArgumentError
from lqgap.simulators.box import ParameterBox
from lqgap.systems import LQG

# A number, a pair (low, high) or a list of choices. Checked when read, not by type.
Extent = Any


@dataclass(frozen=True)
class Quantity:
    """What the user gave for a parameter, its unit, and which values make sense."""

    extent: Extent
    unit: str
    wanted: str
    is_valid: Callable[[float], bool]
    is_discrete: bool = False


def positive(extent: Extent, unit: str = "") -> Quantity:
    """A quantity above zero, such as a mass."""
    return Quantity(extent, unit, "positive", lambda value: value > 0)


def nonnegative(extent: Extent, unit: str = "") -> Quantity:
    """A quantity that may vanish, such as friction."""
    return Quantity(extent, unit, "at least 0", lambda value: value >= 0)


def real(extent: Extent, unit: str = "") -> Quantity:
    """A quantity of either sign, such as an input gain."""
    return Quantity(extent, unit, "finite", lambda _: True)


def whole(extent: Extent, unit: str = "", *, least: int = 0) -> Quantity:
    """A number of things; several of them are a list, as no interval is whole."""
    wanted = f"whole and at least {least}"
    return Quantity(extent, unit, wanted, lambda v: v >= least and v == round(v), is_discrete=True)


def plus_or_minus(extent: Extent) -> Quantity:
    """Plus or minus one."""
    return Quantity(extent, "", "1 or -1", lambda value: abs(value) == 1, is_discrete=True)


def make_family(build: Callable[..., LQG], quantities: Mapping[str, Quantity]) -> ParameterBox:
    """The plants `build(**quantities)` over the uncertain quantities, the known ones being held."""
    for name, quantity in quantities.items():
        _require_valid(name, quantity)
    known = {name: _plain(quantity) for name, quantity in quantities.items() if not _is_uncertain(quantity)}
    uncertain = {name: quantity for name, quantity in quantities.items() if name not in known}
    if not uncertain:
        raise InvalidArgumentError(
            f"every parameter is one number, so there is one plant and no family: give at least one of "
            f"{', '.join(quantities)} as an interval (low, high) or a list of values"
        )
    return ParameterBox(
        lambda **values: build(**known, **values),
        {name: quantity.extent for name, quantity in uncertain.items()},
        units={name: quantity.unit for name, quantity in uncertain.items()},
    )


def _is_uncertain(quantity: Quantity) -> bool:
    return isinstance(quantity.extent, tuple | list)


def _plain(quantity: Quantity) -> float | int:
    return int(quantity.extent) if quantity.is_discrete else float(quantity.extent)


def _require_valid(name: str, quantity: Quantity) -> None:
    extent = quantity.extent
    forms = "a number or a list" if quantity.is_discrete else "a number, an interval (low, high) or a list"
    values = list(extent) if _is_uncertain(quantity) else [extent]
    valid = all(_is_number(value) and quantity.is_valid(value) for value in values)
    if not valid or (quantity.is_discrete and isinstance(extent, tuple)):
        raise InvalidArgumentError(
            f"{name} is {extent!r}, expected {forms}; values must be {quantity.wanted}"
        )


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond double precision
        return False
