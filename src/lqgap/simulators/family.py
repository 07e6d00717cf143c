"""A family of simulators with continuous parameters, and what every such family can do.

A family says what its parameters are and how they make a plant; grids, samples, covers and membership
are written once, here, in terms of that.
"""

import abc
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float

from lqgap.errors import InvalidArgumentError, InvalidSystemError, LqgapError
from lqgap.linalg.arguments import read_count, read_positive
from lqgap.simulators.cover import find_cover
from lqgap.simulators.finite import Finite, batch_invariants
from lqgap.simulators.invariants import chunk_size, invariants
from lqgap.simulators.parameters import Parameter, read_values, require_names
from lqgap.systems import LQG, stack


class AbstractFamily(eqx.Module):
    """A set of plants given by parameters: `build(**values)` makes a member."""

    parameters: eqx.AbstractVar[tuple[Parameter, ...]]

    @abc.abstractmethod
    def build(self, **values: Any) -> LQG:
        """The plant of these parameter values."""

    @abc.abstractmethod
    def is_inside(self, theta: Float[np.ndarray, "member parameter"]) -> np.ndarray:
        """Which rows of parameter values, all within their intervals, belong to the family."""

    @abc.abstractmethod
    def sample_parameters(self, key: Array, count: int) -> Float[np.ndarray, "member parameter"]:
        """Rows of parameter values drawn at random from the family."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def units(self) -> tuple[str, ...]:
        """The parameters' units, in order."""
        return tuple(parameter.unit for parameter in self.parameters)

    @property
    def is_traceable(self) -> bool:
        """Whether `build` can be jitted and differentiated; if not, members are built one by one."""
        return all(_is_traceable(self, choice) for choice in choices(self))

    def system(self, theta: Any) -> LQG:
        """The member with these parameter values, by name or in order."""
        return self.members(read_values(self.parameters, theta)[None, :])[0]

    def nominal(self) -> LQG:
        """The member in the middle of all intervals."""
        return self.system([parameter.middle for parameter in self.parameters])

    def members(self, theta: Any) -> Finite:
        """The members of the rows of a table of parameter values, as a class."""
        theta = np.asarray(theta, dtype=float)
        if len(theta) == 0:
            raise InvalidArgumentError("no parameter values are left inside the family: the class is empty")
        systems = build_members(self, theta)
        return Finite(systems, theta, names=self.names, units=self.units)

    def grid(self, points: int | Mapping[str, int]) -> Finite:
        """The members on a regular grid: `points` along each interval, by name or the same for all."""
        if isinstance(points, Mapping):
            require_names(points, self.names)
        axes = [
            parameter.points(read_count("points", _points_of(points, parameter), least=1))
            for parameter in self.parameters
        ]
        theta = np.array(list(itertools.product(*axes)))
        return self.members(theta[self.is_inside(theta)])

    def sample(self, key: Array, num_members: Any) -> Finite:
        """Members whose parameters are drawn at random, uniformly from a box."""
        return self.members(self.sample_parameters(key, read_count("num_members", num_members, least=1)))

    def cover(self, radius: Any, *, max_members: int = 100_000) -> Finite:
        """Members such that every plant of the family is within `radius` of one, in the invariants."""
        radius = read_positive("radius", radius)
        tables = [find_cover(self, radius, held=choice, max_members=max_members) for choice in choices(self)]
        covering = self.members(np.concatenate(tables))
        return eqx.tree_at(lambda members: members.radius, covering, radius)

    def nearest(self, plant: LQG, *, num_starts: int = 8) -> tuple[np.ndarray, float]:
        """The parameters of the member nearest to a plant in the invariants, and the distance."""
        length = 2 * plant.num_states
        target = batch_invariants(stack([plant]), length=length)[0]
        starts = self.grid(3) if 3 ** len(self.parameters) <= 243 else self.sample(jax.random.key(0), 243)
        vectors = starts.invariants(length=length)
        distances = np.linalg.norm(vectors - target, axis=1)
        return min(
            (
                _descend(self, np.asarray(starts.parameters[index]), target, length)
                for index in np.argsort(distances)[:num_starts]
            ),
            key=lambda found: found[1],
        )

    def contains(self, plant: LQG, *, tolerance: float = 1e-6) -> bool:
        """Whether a member has the same input/output law as the plant, up to a relative tolerance."""
        theta, distance = self.nearest(plant)
        size = np.linalg.norm(batch_invariants(stack([plant]), length=2 * plant.num_states))
        return bool(distance <= tolerance * size and self.is_inside(theta[None, :])[0])


def build_members(family: AbstractFamily, theta: Float[np.ndarray, "member parameter"]) -> LQG:
    """A batch of plants: mapped and compiled if `build` can be traced, one by one if not."""
    groups = [(choice, _rows_of(family, theta, choice)) for choice in choices(family)]
    groups = [(choice, rows) for choice, rows in groups if len(rows)]
    plants = [_build_group(family, theta[rows], choice) for choice, rows in groups]
    for (_, rows), plant in zip(groups, plants, strict=True):
        _require_size(family, plant, plants[0], theta[rows[0]])
    order = np.argsort(np.concatenate([rows for _, rows in groups]))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[order], *plants)


def choices(family: AbstractFamily) -> list[dict[str, Any]]:
    """Every combination of the discrete parameters, as plain Python numbers."""
    discrete = [parameter for parameter in family.parameters if parameter.choices]
    values = [[int(c) if float(c).is_integer() else c for c in parameter.choices] for parameter in discrete]
    names = [parameter.name for parameter in discrete]
    return [dict(zip(names, combination, strict=True)) for combination in itertools.product(*values)]


def draw_from_box(
    parameters: tuple[Parameter, ...], key: Array, count: int
) -> Float[np.ndarray, "member parameter"]:
    """Rows of values drawn uniformly from the intervals and the choices."""
    uniform = np.asarray(jax.random.uniform(key, (count, len(parameters)), dtype=float))
    columns = []
    for parameter, column in zip(parameters, uniform.T, strict=True):
        if parameter.choices:
            index = np.minimum((column * len(parameter.choices)).astype(int), len(parameter.choices) - 1)
            columns.append(np.asarray(parameter.choices)[index])
        else:
            columns.append(parameter.low + column * (parameter.high - parameter.low))
    return np.stack(columns, axis=1)


def _points_of(points: int | Mapping[str, int], parameter: Parameter) -> Any:
    return points.get(parameter.name, 1) if isinstance(points, Mapping) else points


def _rows_of(family: AbstractFamily, theta: np.ndarray, choice: dict[str, Any]) -> np.ndarray:
    match = np.ones(len(theta), dtype=bool)
    for column, name in enumerate(family.names):
        if name in choice:
            match &= np.isclose(theta[:, column], choice[name], rtol=1e-9, atol=1e-12)
    return np.flatnonzero(match)


def _continuous(family: AbstractFamily, choice: dict[str, Any]) -> list[int]:
    return [column for column, name in enumerate(family.names) if name not in choice]


def _builder(family: AbstractFamily, choice: dict[str, Any]) -> Callable[[Any], LQG]:
    names = [family.names[column] for column in _continuous(family, choice)]

    def build(values: Any) -> LQG:
        plant = family.build(**choice, **{name: values[i] for i, name in enumerate(names)})
        if not isinstance(plant, LQG):
            raise InvalidSystemError(f"build returned a {type(plant).__name__}, expected an lqgap.LQG")
        return plant

    return build


def _is_traceable(family: AbstractFamily, choice: dict[str, Any]) -> bool:
    size = len(_continuous(family, choice))
    try:
        jax.eval_shape(_builder(family, choice), jax.ShapeDtypeStruct((size,), jnp.float64))
    except (jax.errors.JAXTypeError, TypeError):
        return False
    return True


def _build_group(family: AbstractFamily, theta: np.ndarray, choice: dict[str, Any]) -> LQG:
    columns = _continuous(family, choice)
    total = len(theta)
    size = chunk_size(total)
    rows = np.minimum(np.arange(-(-total // size) * size), total - 1).reshape(-1, size)
    try:
        chunks = [
            _build_mapped(family, tuple(choice.items()), jnp.asarray(theta[row][:, columns])) for row in rows
        ]
    except (jax.errors.JAXTypeError, TypeError):  # plain Python inside `build`: one by one
        build = _builder(family, choice)
        return stack([_build_one(family, build, row, columns) for row in theta])
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:total], *chunks)


@eqx.filter_jit
def _build_mapped(family: AbstractFamily, choice: tuple[tuple[str, Any], ...], values: Array) -> LQG:
    return jax.vmap(_builder(family, dict(choice)))(values)


def _build_one(
    family: AbstractFamily, build: Callable[[Any], LQG], row: np.ndarray, columns: list[int]
) -> LQG:
    try:
        return build([float(value) for value in row[columns]])
    except LqgapError as error:
        raise type(error)(f"{error} (member {_describe(family, row)})") from None


def _require_size(family: AbstractFamily, plant: LQG, first: LQG, row: np.ndarray) -> None:
    sizes = [(p.num_states, p.num_inputs, p.num_outputs) for p in (plant, first)]
    if sizes[0] != sizes[1]:
        raise InvalidSystemError(
            f"build gives (states, inputs, outputs) = {sizes[0]} at {_describe(family, row)} and {sizes[1]} "
            f"elsewhere: all members must be of one size; pad the smaller, for example with delay states"
        )


def _describe(family: AbstractFamily, row: np.ndarray) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in zip(family.names, row, strict=True))


def _descend(
    family: AbstractFamily, theta: np.ndarray, target: np.ndarray, length: int
) -> tuple[np.ndarray, float]:
    """Least squares over the continuous parameters, the discrete ones held."""
    choice = next(c for c in choices(family) if len(_rows_of(family, theta[None, :], c)))
    columns = _continuous(family, choice)
    held = tuple(choice.items())

    traceable = _is_traceable(family, choice)

    def residual(values: np.ndarray) -> np.ndarray:
        if traceable:
            return np.asarray(_invariants_at(family, held, jnp.asarray(values), length)) - target
        row = theta.copy()
        row[columns] = values
        return batch_invariants(build_members(family, row[None, :]), length=length)[0] - target

    def slope(values: np.ndarray) -> np.ndarray:
        return np.asarray(_invariants_slope(family, held, jnp.asarray(values), length))

    if not columns:
        return theta, float(np.linalg.norm(residual(theta[columns])))
    low, high = (np.array([getattr(family.parameters[i], end) for i in columns]) for end in ("low", "high"))
    slack = 1e-12 * np.maximum(1, np.abs(high))  # an interval of no width still needs room
    found = scipy.optimize.least_squares(
        residual,
        theta[columns],
        jac=slope if traceable else "2-point",  # pyright: ignore[reportArgumentType]
        bounds=(low - slack, high + slack),
        x_scale=high - low + slack,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=50,
    )
    best = theta.copy()
    best[columns] = np.clip(found.x, low, high)
    return best, float(np.linalg.norm(found.fun))


@eqx.filter_jit
def _invariants_at(
    family: AbstractFamily, choice: tuple[tuple[str, Any], ...], values: Array, length: int
) -> Array:
    return invariants(_builder(family, dict(choice))(values), length=length)


@eqx.filter_jit
def _invariants_slope(
    family: AbstractFamily, choice: tuple[tuple[str, Any], ...], values: Array, length: int
) -> Array:
    return jax.jacfwd(lambda values: _invariants_at(family, choice, values, length))(values)
