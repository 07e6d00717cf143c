"""Who is compared on what: methods and classes by name, with options in braces after it.

    thompson{lazy = true}        dc_motor{points = 3, friction = [0.002, 0.004]}        study.toml

Options are TOML and are read as strictly as a study. A class is a grid of its family.
"""

import inspect
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lqgap.errors import InvalidArgumentError, did_you_mean
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod
from lqgap.experiments.parsing import Source, check_study, read_study
from lqgap.experiments.plants import Plants
from lqgap.simulators import AbstractFamily, Finite, plants

CLASSES = (
    "mass_spring_damper",
    "dc_motor",
    "web_server",
    'boeing_747{measured = "speed_and_attitude", points = 2}',
    "unknown_sign",
    "two_mass_spring",
    "thermal_zones{points = 3}",
    "overactuated",
    "spare_actuator",
)
MOST_POINTS, MOST_MEMBERS = 5, 81  # of a class whose points are not given
Families = Sequence[str] | Mapping[str, AbstractFamily | Finite] | None
Methods = Sequence[str] | Mapping[str, AbstractMethod] | None
SPEC = re.compile(r"\s*([^\s{]+)\s*(\{.*\})?\s*", re.DOTALL)


@dataclass(frozen=True)
class Ground:
    """A class that methods are compared on, and the limits of its inputs, if there are some."""

    members: Finite
    limits: Any = None


def read_methods(methods: Methods) -> dict[str, AbstractMethod]:
    """Methods by name, with their options."""
    if methods is None:
        methods = [name for name, method in METHODS.items() if method.kind != "reference"]
    _require_named("methods", methods, "methods")
    if isinstance(methods, Mapping):
        found = dict(methods)
    else:
        found = {spec.strip(): _method(spec) for spec in methods}
        if len(found) < len(methods):
            raise InvalidArgumentError("methods has two of one name: give each once")
    for name, method in found.items():
        if not isinstance(method, AbstractMethod):
            raise InvalidArgumentError(
                f"methods has a {type(method).__name__} as {name!r}, expected a method of METHODS with its "
                f"options; a learner or a policy of your own is run by lqgap.adaptive.run_many"
            )
        if method.kind == "reference":
            raise InvalidArgumentError(f"{name} is what all others are measured against: its excess is zero")
    if not found:
        raise InvalidArgumentError("methods is empty, expected at least one")
    return found


def read_classes(families: Families) -> dict[str, Ground]:
    """Finite classes by name."""
    families = CLASSES if families is None else families
    _require_named("families", families, "families")
    if isinstance(families, Mapping):
        found = {name: Ground(_finite(name, family)) for name, family in families.items()}
    else:
        found = {spec.strip(): _class(spec) for spec in families}
        if len(found) < len(families):
            raise InvalidArgumentError("families has two classes of one name: give each once")
    if not found:
        raise InvalidArgumentError("families is empty, expected at least one")
    return found


def _require_named(name: str, given: Any, kind: str) -> None:
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not (isinstance(given, Mapping) or (is_list and all(isinstance(each, str) for each in given))):
        raise InvalidArgumentError(
            f"{name} is {given!r:.80}, expected a list of names, or {kind} by name, in a dict"
        )
    for each in given:
        if not isinstance(each, str) or not each.strip():
            raise InvalidArgumentError(f"{name} has the name {each!r}, expected one that can be shown")


def _finite(name: str, family: Any) -> Finite:
    if not isinstance(family, AbstractFamily | Finite):
        raise InvalidArgumentError(
            f"families has a {type(family).__name__} as {name!r}, expected a family or a finite class: one "
            f"of your plants is lqgap.Finite(lqgap.stack([...]))"
        )
    return family if isinstance(family, Finite) else _grid(family)


def _split(spec: str) -> tuple[str, dict[str, Any]]:
    """A name, and the options in braces after it."""
    found = SPEC.fullmatch(spec)
    if found is None:
        raise InvalidArgumentError(f"{spec!r} is no name with options, such as thompson{{lazy = true}}")
    try:
        return found[1], tomllib.loads(f"options = {found[2] or '{}'}")["options"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidArgumentError(f"{spec!r}: the options are not TOML: {error}") from None


def _method(spec: str) -> AbstractMethod:
    name, options = _split(spec)
    if name not in METHODS:
        hint = did_you_mean(name, METHODS) or f"; there are {', '.join(METHODS)}"
        raise InvalidArgumentError(f"there is no method {name!r}{hint}")
    table = {"plant": {"family": "unknown_sign"}, "methods": {name: options}}
    return check_study(table, Source(f"method {spec!r}", Path())).methods.chosen[name]


def _class(spec: str) -> Ground:
    name, options = _split(spec)
    if name.endswith(".toml") and not options:
        study, source = read_study(name)
        found = Plants(study, source, trust=False)
        if found.study.plant.loads and (found.signals.limits or found.signals.rate_limits):
            raise source.error(
                ("plant",),
                "inputs of plants with loads are limited, which comparisons of online methods do not know: "
                "leave out one of both",
            )
        return Ground(found.members, found.limits)
    if name not in plants.FAMILIES:
        hint = did_you_mean(name, plants.FAMILIES) or f"; there are {', '.join(plants.FAMILIES)}"
        raise InvalidArgumentError(f"there is no family {name!r}{hint}")
    points, make = options.pop("points", None), plants.FAMILIES[name]
    known = list(inspect.signature(make).parameters)
    for quantity in options:
        if quantity not in known:
            hint = did_you_mean(quantity, known) or f"; there are {', '.join(known)}"
            raise InvalidArgumentError(f"{name} has no quantity {quantity!r}{hint}")
    family = make(**{quantity: _extent(value) for quantity, value in options.items()})
    return Ground(_grid(family) if points is None else family.grid(points))


def _extent(value: Any) -> Any:
    """As in studies: [low, high] is an interval, {choices = [..]} is one of a few."""
    if isinstance(value, dict) and value.keys() == {"choices"}:
        return value["choices"]
    return tuple(value) if isinstance(value, list) else value


def _grid(family: AbstractFamily | Finite) -> Finite:
    """As many points along each parameter as make a class of a modest size."""
    for points in range(MOST_POINTS, 1, -1):
        members = family.grid(points)
        if len(members) <= MOST_MEMBERS:
            return members
    return family.grid(2)
