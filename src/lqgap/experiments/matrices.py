"""A family from the matrices of a study, whose entries are formulas of parameters.

With `dt` they are in continuous time (`systems.continuous`). The number of past inputs in the state must be
the same for all members, so that it is that of the longest delay.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from lqgap.errors import did_you_mean
from lqgap.experiments.expressions import Formula, names_in, read_formula, value_of
from lqgap.experiments.parsing import Source
from lqgap.experiments.plant_tables import MatrixPlant, extent_of
from lqgap.simulators import ParameterBox
from lqgap.systems import (
    LQG,
    Signals,
    correlate_noise,
    discretize,
    measure_disturbance,
    zero_order_hold,
)
from lqgap.systems.lqg import EXTENSIONS, MATRICES

MANY = 10_000  # plants of which the longest delay is taken


def family_of_matrices(plant: MatrixPlant, source: Source) -> ParameterBox:
    """The box of the parameters; errors name the entry."""
    given = {
        name: _read_matrix(plant, matrix, name, source)
        for name in (*MATRICES, *EXTENSIONS, "G", "E")
        if (matrix := getattr(plant, name)) is not None
    }
    _require_rows(given, source)
    delays = _read_delays(plant, source)
    entries = [*delays, *(entry for matrix in given.values() for row in matrix for entry in row)]
    used = set[str]().union(*map(names_in, entries))
    for name in sorted(plant.parameters.keys() - used):
        raise source.error(("plant", "parameters", name), "nothing depends on it")
    extents = {name: extent_of(value) for name, value in plant.parameters.items()}
    known = {name: value for name, value in extents.items() if not isinstance(value, tuple | list)}
    uncertain = {name: value for name, value in extents.items() if name not in known}
    if not uncertain:
        raise source.error(("plant", "parameters"), "every parameter is one number: there is no family")
    known["dt"] = plant.dt

    def write(values: dict[str, Any]) -> tuple[LQG, Any, Any]:
        numbers = known | values
        filled = {name: jnp.stack([_fill(row, numbers) for row in rows]) for name, rows in given.items()}
        G, E = filled.pop("G", None), filled.pop("E", None)
        return LQG(**filled), G, E

    def build(**values: Any) -> LQG:
        written, G, E = write(values)
        if plant.dt is not None:
            E = None if E is None else zero_order_hold(written.A, E, dt=plant.dt)[1]
            delay = _fill(delays, known | values)
            written = discretize(written, dt=plant.dt, delay=delay, longest=longest)
        if G is not None:
            return correlate_noise(written, _pad(G, written.num_states))
        if E is None or plant.measured is None:
            return written
        return measure_disturbance(written, _pad(E, written.num_states), **plant.measured.model_dump())

    box = ParameterBox(build, uncertain, signals=Signals(dt=plant.dt, time_unit=plant.time_unit))
    list(map(write, [] if plant.dt is None else _ends(box)))  # what is sampled shows no more what was written
    longest = max(_longest(formula, box, known, source) for formula in delays)
    return box


def _ends(box: ParameterBox) -> list[dict[str, float]]:
    return [{each.name: getattr(each, end) for each in box.parameters} for end in ("low", "high")]


def _read_matrix(
    plant: MatrixPlant, matrix: Sequence[Sequence[Any]], name: str, source: Source
) -> list[list[Formula]]:
    if len({len(row) for row in matrix}) > 1:
        raise source.error(("plant", name), "its rows differ in length")
    return [
        [_read(plant, entry, (name, i, j), source) for j, entry in enumerate(row)]
        for i, row in enumerate(matrix)
    ]


def _require_rows(given: Mapping[str, Sequence[Any]], source: Source) -> None:
    """G and E have a row for each state, to which those of past inputs are added."""
    count = len(given["A"])
    for name in sorted({"E", "G"} & given.keys()):
        if len(given[name]) != count:
            what = f"it has {len(given[name])} rows, expected {count}, one for each state (row of A)"
            raise source.error(("plant", name), what)


def _read_delays(plant: MatrixPlant, source: Source) -> list[Formula]:
    if not isinstance(plant.delay, list):
        return [_read(plant, plant.delay or 0.0, ("delay",), source)]
    return [_read(plant, entry, ("delay", i), source) for i, entry in enumerate(plant.delay)]


def _read(plant: MatrixPlant, entry: Any, path: tuple[str | int, ...], source: Source) -> Formula:
    """A number or formula; raises if it depends on what is no parameter."""
    formula = read_formula(entry) if isinstance(entry, str) else float(entry)
    known = [*plant.parameters, *([] if plant.dt is None else ["dt"])]
    for unknown in sorted(names_in(formula).difference(known)):
        hint = did_you_mean(unknown, known)
        raise source.error(("plant", *path), f"there is no parameter {unknown!r}{hint}")
    return formula


def _fill(row: Sequence[Formula], values: Mapping[str, Any]) -> Any:
    return jnp.stack([jnp.asarray(value_of(entry, values), dtype=jnp.float64) for entry in row])


def _pad(matrix: Any, num_states: int) -> Any:
    """With rows of zeros for states that are past inputs."""
    return jnp.pad(matrix, ((0, num_states - len(matrix)), (0, 0)))


def _longest(formula: Formula, box: ParameterBox, known: Mapping[str, Any], source: Source) -> float:
    """The longest delay of all members, as far as a fine grid of them shows it."""
    ranges = [each for each in box.parameters if each.name in names_in(formula)]
    count = int(MANY ** (1 / max(1, len(ranges))))
    mesh = np.meshgrid(*(each.points(count) for each in ranges))
    values = {each.name: axis for each, axis in zip(ranges, mesh, strict=True)}
    times = np.asarray(value_of(formula, {**known, **values}))
    if not np.all(np.isfinite(times) & (times >= 0)):
        raise source.error(("plant", "delay"), "it is negative, or no number, somewhere in the ranges")
    return float(np.max(times))
