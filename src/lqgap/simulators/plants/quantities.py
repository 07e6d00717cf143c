"""Physical quantities as users give them, and the family that the uncertain ones span.

A quantity is a number if it is known, a pair (low, high) if it lies between, a list if it is one of a few.
"""

import functools
import inspect
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, cast, get_args

import jax

from lqgap.errors import InvalidArgumentError
from lqgap.simulators.box import NOTHING_KNOWN, ParameterBox
from lqgap.systems import LQG, Signals

# A number, a pair (low, high) or a list of choices. Checked when read, not by type.
Extent = Any
P = ParamSpec("P")


@dataclass(frozen=True)
class Quantity:
    """The unit of a parameter, and which values make sense; it annotates the parameter."""

    unit: str
    wanted: str
    is_valid: Callable[[float], bool]
    is_discrete: bool = False


def positive(unit: str = "") -> Quantity:
    """A quantity above zero, such as a mass."""
    return Quantity(unit, "positive", lambda value: value > 0)


def nonnegative(unit: str = "") -> Quantity:
    """A quantity that may vanish, such as friction."""
    return Quantity(unit, "at least 0", lambda value: value >= 0)


def real(unit: str = "") -> Quantity:
    """A quantity of either sign, such as an input gain."""
    return Quantity(unit, "finite", lambda _: True)


def whole(unit: str = "", *, least: int = 0) -> Quantity:
    """A number of things; several of them are a list, as no interval is whole."""
    wanted = f"whole and at least {least}"
    return Quantity(unit, wanted, lambda v: v >= least and v == round(v), is_discrete=True)


def plus_or_minus() -> Quantity:
    """Plus or minus one."""
    return Quantity("", "1 or -1", lambda value: abs(value) == 1, is_discrete=True)


def named_family(
    signals: Signals = NOTHING_KNOWN,
) -> Callable[[Callable[P, LQG]], Callable[P, ParameterBox]]:
    """From one plant as a function of numbers to the family as a function of what is known of them.

    Arguments are `Annotated[Extent, quantity]`; a choice between texts is a `Literal`, and held.

    Args:
        signals: names of inputs and outputs; the time of a step, if no argument `dt` is.
    """
    return functools.partial(_family_of, signals)


def _family_of(signals: Signals, build: Callable[P, LQG]) -> Callable[P, ParameterBox]:
    signature = inspect.signature(build)
    annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    quantities = {n: a.__metadata__[0] for n, a in annotations.items() if hasattr(a, "__metadata__")}

    @functools.wraps(build)
    def make(*args: P.args, **kwargs: P.kwargs) -> ParameterBox:
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        known, uncertain = {}, {}
        for name, extent in arguments.arguments.items():
            if name not in quantities:
                known[name] = _read_choice(name, extent, get_args(annotations[name]))
            elif _is_uncertain(_require_valid(name, extent, quantities[name])):
                uncertain[name] = extent
            else:
                known[name] = int(extent) if quantities[name].is_discrete else float(extent)
        if not uncertain:
            raise InvalidArgumentError(
                f"every parameter is one number, so there is one plant and no family: give at least one of "
                f"{', '.join(quantities)} as an interval (low, high) or a list of values"
            )
        units = {name: quantities[name].unit for name in uncertain}
        unit = quantities["dt"].unit if "dt" in quantities else "s"
        told = replace(signals, dt=known.get("dt", signals.dt), time_unit=unit)
        # Equal to that of every family with the same numbers, so that none compiles a program of its own.
        plant_of = jax.tree_util.Partial(cast(Any, build), **known)
        return ParameterBox(plant_of, uncertain, units=units, signals=told)

    cast(Any, make).__signature__ = signature.replace(return_annotation=ParameterBox)
    return make


def _read_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgumentError(f"{name} is {value!r}, expected {' or '.join(map(repr, choices))}")
    return value


def _is_uncertain(extent: Extent) -> bool:
    return isinstance(extent, tuple | list)


def _require_valid(name: str, extent: Extent, quantity: Quantity) -> Extent:
    forms = "a number or a list" if quantity.is_discrete else "a number, an interval (low, high) or a list"
    values = list(extent) if _is_uncertain(extent) else [extent]
    valid = all(_is_number(value) and quantity.is_valid(value) for value in values)
    if not valid or (quantity.is_discrete and isinstance(extent, tuple)):
        raise InvalidArgumentError(
            f"{name} is {extent!r}, expected {forms}; values must be {quantity.wanted}"
        )
    return extent


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond double precision
        return False
