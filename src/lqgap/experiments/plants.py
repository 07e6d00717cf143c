"""The plants of a study: the class that policies are made from, the real plants, and a map of the box.

Real plants are drawn by the seed of the study, given by their parameters, or given by matrices. Plants of
several sizes are padded with states that are neither reachable nor observable, which change no law.
"""

import copy
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.batches import join, take
from lqgap.errors import LqgapError
from lqgap.evaluation.worst import spread_starts
from lqgap.experiments.family import Family, add_loads, make_family, place_of_member, signals_of
from lqgap.experiments.parsing import Source
from lqgap.experiments.plant_tables import FamilyPlant, MatrixPlant
from lqgap.experiments.store import key_of
from lqgap.experiments.study import Study
from lqgap.policies import AbstractPolicy, BoundedChanges, Saturated, StationaryLQG
from lqgap.policies.limits import LimitsLike
from lqgap.simulators import AbstractFamily, Finite, Parameter
from lqgap.simulators.parameters import require_names
from lqgap.states import fingerprint
from lqgap.systems import LQG, Signals, require_converged, stack
from lqgap.systems.lqg import EXTENSIONS, MATRICES
from lqgap.systems.optimum import solve_members

NUM_COARSE = 16  # members of a class that grows, at first
MAX_MEMBERS = 400  # of the class: banks run a filter for each
STATES_IN_ROWS, STATES_IN_COLUMNS = ("A", "B", "W", "S0", "Qx", "N"), ("A", "C", "W", "S0", "Qx")


@dataclass(frozen=True)
class RealPlants:
    """The plants that methods are evaluated on."""

    systems: LQG
    names: tuple[str, ...]
    parameters: tuple[Mapping[str, float], ...]  # empty for a plant given by matrices
    is_member: tuple[bool, ...]


@dataclass(frozen=True)
class BoxMap:
    """A grid over two parameters, the others held in the middle; a row for each value of the second."""

    x: Parameter
    y: Parameter
    x_values: np.ndarray
    y_values: np.ndarray
    held: Mapping[str, float]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y_values), len(self.x_values)


class Plants:
    """All plants of a study, each made when it is first asked for: a run that goes on may need none of them.

    Args:
        trust: whether the study may name a Python function, which is then imported and called.
    """

    def __init__(self, study: Study, source: Source, *, trust: bool):
        self.study, self.source, self.trust = study, source, trust
        self.added: list[list[float]] = []  # parameters of members beyond those that the study asks for

    def with_members(self, added: Sequence[Sequence[float]]) -> "Plants":
        """The same plants with further members of these parameters."""
        grown = copy.copy(self)
        grown.added = [*self.added, *map(list, added)]
        grown.__dict__.pop("members", None)
        return grown

    @functools.cached_property
    def family(self) -> Family:
        """The family of simulators."""
        return make_family(self.study, self.source, trust=self.trust)

    @functools.cached_property
    def signals(self) -> Signals:
        """What is known of the plants' inputs and outputs."""
        return signals_of(self.study, self.family, self.source)

    @property
    def limits(self) -> LimitsLike:
        """Of inputs, for whatever acts on the plants; with loads they are changes, kept by policies."""
        return None if self.study.plant.loads else self._bounds

    @property
    def has_limits(self) -> bool:
        """Whether inputs are limited."""
        return self._bounds is not None

    def limited(self, policy: AbstractPolicy) -> AbstractPolicy:
        """The policy, within the limits of inputs if there are some."""
        if not self.has_limits:
            return policy
        return (BoundedChanges if self.study.plant.loads else Saturated)(policy, self._bounds)

    @property
    def _bounds(self) -> LimitsLike:
        return self.signals.bounds(num_inputs=self.members.systems.num_inputs)

    @functools.cached_property
    def members(self) -> Finite:
        """The class before the audit."""
        members = make_members(self.study, self.family, self.source)
        if not self.added or not isinstance(self.family, AbstractFamily):
            return members
        return self.family.members(np.concatenate([np.asarray(members.parameters), self.added]))

    @functools.cached_property
    def real(self) -> RealPlants:
        """The real plants."""
        return make_real(self.study, self.family, self.source)

    @functools.cached_property
    def box(self) -> BoxMap | None:
        """The map over the box, if there is one."""
        return make_map(self.study, self.family)

    @functools.cached_property
    def tried(self) -> Finite | None:
        """Plants of the ranges on which all methods are evaluated; those of the map come first."""
        if not isinstance(self.family, AbstractFamily):
            return None
        return self.family.members(_rows_to_try(self.study, self.family, self.box))

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of all plants where the text of the study does not determine them; else empty."""
        if isinstance(self.study.plant, FamilyPlant | MatrixPlant):
            return ""
        nominal = None if isinstance(self.family, Finite) else self.family.nominal()
        return fingerprint(nominal, self.members, self.real.systems, self.tried, repr(self.signals))


def key_for(seed: int, purpose: str) -> Array:
    """A key of its own for every purpose."""
    return jax.random.fold_in(jax.random.key(seed), int(key_of(purpose)[:8], 16))


def make_members(study: Study, family: Family, source: Source) -> Finite:
    """The class that policies are made from."""
    try:
        if study.grid.sample is not None:
            members = family.sample(study.grid.sample, key=key_for(study.seed, "members"))
        elif study.grid.points == "auto" and isinstance(family, AbstractFamily):
            members = _coarse_class(study, family)
        else:
            members = family.grid(4 if study.grid.points == "auto" else study.grid.points)
    except LqgapError as error:
        raise source.error(place_of_member(error, study, otherwise="grid"), str(error)) from None
    if len(members) > MAX_MEMBERS:
        raise source.error(
            ("grid",),
            f"the class would have {len(members)} members, more than {MAX_MEMBERS}: take fewer points",
        )
    return members


def make_real(study: Study, family: Family, source: Source) -> RealPlants:
    """The real plants of a study."""
    systems: list[LQG] = []
    names: list[str] = []
    parameters: list[Mapping[str, float]] = []
    is_member: list[bool] = []
    if study.real.count:
        drawn = family.sample(study.real.count, key=key_for(study.seed, "real plants"), replace=True)
        systems.append(drawn.systems)
        names += [f"real {index + 1}" for index in range(len(drawn))]
        parameters += [_values(drawn, index) for index in range(len(drawn))]
        is_member += [True] * len(drawn)
    for index, values in enumerate(study.real.plants):
        plant, inside = _given(family, values, source, index)
        systems.append(plant)
        names.append(f"given {index + 1}")
        parameters.append(values)
        is_member.append(inside)
    for index, outside in enumerate(study.real.outside):
        nominal = family[0] if isinstance(family, Finite) else family.nominal()
        names_given = (*MATRICES, *EXTENSIONS)
        given = {name: matrix for name in names_given if (matrix := getattr(outside, name)) is not None}
        systems.append(add_loads(_outside(given, nominal, source, index), study))
        names.append(f"outside {index + 1}")
        parameters.append({})
        is_member.append(False)
    return RealPlants(pad(systems), tuple(names), tuple(parameters), tuple(is_member))


def make_map(study: Study, family: Family) -> BoxMap | None:
    """The first two intervals of a family; None if it has fewer."""
    intervals = [p for p in getattr(family, "parameters", ()) if isinstance(p, Parameter) and not p.choices]
    if not isinstance(family, AbstractFamily) or len(intervals) < 2:
        return None
    x, y = intervals[:2]
    count = study.evaluation.map_points
    held = {p.name: p.middle for p in family.parameters if p.name not in (x.name, y.name)}
    return BoxMap(x, y, x.points(count), y.points(count), held)


def pad(plants: list[LQG]) -> LQG:
    """Plants and batches of them, as one batch of one number of states."""
    most = max(plant.num_states for plant in plants)
    padded = [pad_to(plant, most) for plant in plants]
    return join([plant if plant.A.ndim == 3 else stack([plant]) for plant in padded])


def pad_to(plant: LQG, states: int) -> LQG:
    """The plant, or a batch of them, with further states that stay zero."""
    more = states - plant.num_states
    if more == 0:
        return plant

    def widen(name: str, matrix: Array) -> Array:
        rows, columns = ((0, more * (name in names)) for names in (STATES_IN_ROWS, STATES_IN_COLUMNS))
        return jnp.pad(matrix, [(0, 0)] * (matrix.ndim - 2) + [rows, columns])

    wide = {name: widen(name, matrix) for name, matrix in plant.matrices().items()}
    return eqx.tree_at(lambda p: [getattr(p, name) for name in wide], plant, list(wide.values()))


def control_optimally(plant: LQG) -> StationaryLQG:
    """The optimal controller of a plant, whose equations are solved by the program that the class needs."""
    optimum = take(solve_members(stack([plant, plant])), 0)
    require_converged(optimum, plant)
    return StationaryLQG(plant, optimum=optimum)


def _coarse_class(study: Study, family: AbstractFamily) -> Finite:
    """The finest of a few grids that has few members; corners and random ones if none has."""
    for points in (4, 3, 2):
        sizes = [len(parameter.points(points)) for parameter in family.parameters]
        if math.prod(sizes) <= NUM_COARSE:
            return family.grid(points)
    return family.members(spread_starts(family, key_for(study.seed, "members"))[:NUM_COARSE])


def _rows_to_try(study: Study, family: AbstractFamily, box: BoxMap | None) -> np.ndarray:
    """The map; and corners and random plants, unless it shows all there is."""
    more = spread_starts(family, key_for(study.seed, "box"))
    if box is None:
        return more
    rows = [{**box.held, box.y.name: v, box.x.name: w} for v in box.y_values for w in box.x_values]
    of_map = np.asarray([[row[name] for name in family.names] for row in rows])
    return np.concatenate([of_map, more]) if box.held else of_map


def _values(members: Finite, index: int) -> dict[str, float]:
    return dict(zip(members.names, np.asarray(members.parameters[index]).tolist(), strict=True))


def _given(family: Family, values: Mapping[str, float], source: Source, index: int) -> tuple[LQG, bool]:
    """The plant of these parameter values, and whether they are within their ranges."""
    path = ("real", "plants", index)
    if isinstance(family, Finite):
        raise source.error(path, "a finite class has no parameters to choose: give count, or outside")
    try:
        require_names(values, family.names)
        missing = [name for name in family.names if name not in values]
        if missing:
            raise source.error(path, f"there is no value for {missing[0]}")
        row = np.asarray([[float(values[name]) for name in family.names]])
        inside = all(p.admits(value) for p, value in zip(family.parameters, row[0], strict=True))
        return family.members(row)[0], inside and bool(family.is_inside(row)[0])
    except LqgapError as error:
        raise error if str(error).startswith(source.name) else source.error(path, str(error)) from None


def _outside(given: Mapping[str, Any], nominal: LQG, source: Source, index: int) -> LQG:
    """A plant by its matrices; the cost is ours, and the family's unless another is given."""
    path = ("real", "outside", index)
    try:
        plant = LQG(**{"Q": nominal.Q, "R": nominal.R, **given})
    except LqgapError as error:
        raise source.error(path, str(error)) from None
    for name in EXTENSIONS:
        if (getattr(plant, name) is None) != (getattr(nominal, name) is None):
            raise source.error(
                path, f"either the family and this plant weigh states by {name}, or neither does"
            )
    sizes = [(item.num_inputs, item.num_outputs) for item in (plant, nominal)]
    if sizes[0] != sizes[1]:
        raise source.error(path, f"it has (inputs, outputs) = {sizes[0]}, and the family {sizes[1]}")
    return plant
