"""Several finite classes as one."""

from collections.abc import Sequence

import numpy as np

from lqgap.batches import join
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.finite import Finite


def union(classes: Sequence[Finite]) -> Finite:
    """All members of several classes of one size; the first parameter says from which class each comes.

    A parameter that a class does not have is NaN for its members.
    """
    if not classes:
        raise InvalidArgumentError("classes is empty, expected at least one class")
    sizes = {(c.systems.num_states, c.systems.num_inputs, c.systems.num_outputs) for c in classes}
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"classes have (states, inputs, outputs) = {sorted(sizes)}, expected one size: pad the smaller"
        )
    units = _units(classes)
    tables = []
    for index, members in enumerate(classes):
        table = np.full((len(members), 1 + len(units)), np.nan)
        table[:, 0] = index
        for column, name in enumerate(units, start=1):
            if name in members.names:
                table[:, column] = members.parameters[:, members.names.index(name)]
        tables.append(table)
    return Finite(
        join([members.systems for members in classes]),
        np.concatenate(tables),
        names=("part", *units),
        units=("", *units.values()),
        radius=max(members.radius for members in classes),
    )


def _units(classes: Sequence[Finite]) -> dict[str, str]:
    """The unit of every parameter that any class has."""
    units: dict[str, str] = {}
    for name, unit in (
        pair for members in classes for pair in zip(members.names, members.units, strict=True)
    ):
        if name == "part":
            raise InvalidArgumentError("a class is a union already: form the union of all classes at once")
        if units.setdefault(name, unit) != unit:
            raise InvalidArgumentError(
                f"parameter {name} has the units {units[name]!r} and {unit!r}: convert one"
            )
    return units
