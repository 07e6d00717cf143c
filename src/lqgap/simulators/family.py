"""A family of simulators with continuous parameters, and what every such family can do.

A family says what its parameters are and how they make a plant; grids, samples, covers and membership
are written once, here, in terms of that.
"""

import abc
import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import FloatLike, IntLike, read_count, read_key, read_numbers, read_positive
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.building import Branch, build_members, make_branches
from lqgap.simulators.cover import find_cover
from lqgap.simulators.finite import MAX_MEMBERS, Finite, warn_if_fewer
from lqgap.simulators.nearest import find_nearest
from lqgap.simulators.parameters import Parameter, read_values, require_names
from lqgap.systems import LQG

AT_A_TIME = 64  # rows that are drawn at random
NUM_SPREAD = 256  # random members from which searches start


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
    def branches(self) -> list[Branch]:
        """The family with its discrete parameters held, for every combination of their values."""
        return make_branches(self.plant_of, self.parameters)

    @property
    def plant_of(self) -> Callable[..., LQG]:
        """`build`, or what it calls whatever the ranges are, so that other ranges need no other program."""
        return self.build

    @property
    def is_traceable(self) -> bool:
        """Whether `build` can be jitted and differentiated; if not, members are built one by one."""
        return all(branch.is_traceable for branch in self.branches)

    def system(self, theta: Any) -> LQG:
        """The member with these parameter values, by name or in order."""
        row = read_values(self.parameters, theta)[None, :]
        if not self.is_inside(row)[0]:
            raise InvalidArgumentError(f"theta is {theta!r}, which does not belong to the family")
        return self.members(row)[0]

    def nominal(self) -> LQG:
        """The member in the middle of all intervals."""
        return self.system([parameter.middle for parameter in self.parameters])

    def members(self, theta: Any) -> Finite:
        """The members of the rows of a table of parameter values, as a class."""
        theta = read_numbers("theta", theta)
        if theta.ndim != 2 or theta.shape[1] != len(self.names):
            raise InvalidArgumentError(
                f"theta has shape {theta.shape}, expected a column for each of {', '.join(self.names)}"
            )
        if len(theta) == 0:
            raise InvalidArgumentError("no parameter values are left inside the family: the class is empty")
        systems = build_members(self.branches, theta)
        return Finite(systems, theta, names=self.names, units=self.units)

    def grid(self, points: int | Mapping[str, int]) -> Finite:
        """The members on a regular grid: `points` along each interval, by name or the same for all."""
        if isinstance(points, Mapping):
            require_names(points, self.names)
        axes = [
            parameter.points(read_count("points", _points_of(points, parameter), least=1))
            for parameter in self.parameters
        ]
        if (total := math.prod(map(len, axes))) > MAX_MEMBERS:
            raise InvalidArgumentError(
                f"a grid of {points} points along each of {len(axes)} parameters has {total} members, more "
                f"than {MAX_MEMBERS}: take fewer points, or a sample"
            )
        theta = np.array(list(itertools.product(*axes)))
        return self.members(theta[self.is_inside(theta)])

    def sample(self, count: IntLike, *, key: Array, replace: bool = False) -> Finite:
        """Members whose parameters are drawn at random, uniformly from a box; none twice unless `replace`.

        Args:
            replace: whether a member may be drawn again, as the plants of an evaluation are.
        """
        count = read_count("count", count, least=1, most=MAX_MEMBERS)
        draw = self.sample_parameters if replace else functools.partial(draw_distinct, self)
        drawn = self.members(draw(read_key(key), count))
        warn_if_fewer(count, drawn)
        return drawn

    def cover(self, radius: FloatLike, *, max_members: int = 100_000) -> Finite:
        """Members such that every plant of the family is within `radius` of one, in the invariants.

        How far a cell of parameters reaches is measured at many of its points, not proved for every `build`.
        """
        distance = read_positive("radius", radius)
        tables: list[np.ndarray] = []
        for branch in self.branches:
            left = max_members - sum(map(len, tables))
            tables.append(find_cover(branch, distance, is_inside=self.is_inside, max_members=left))
        covering = self.members(np.concatenate(tables))
        return eqx.tree_at(lambda members: members.radius, covering, distance)

    def nearest(self, plant: LQG) -> tuple[np.ndarray, float]:
        """The parameters of the member nearest to a plant in the invariants, and the distance."""
        return find_nearest(self.branches, self.members(spread_parameters(self)), plant)

    def contains(self, plant: LQG, *, tolerance: float = 1e-6) -> bool:
        """Whether a member has the same input/output law as the plant, up to a relative tolerance."""
        theta, _ = self.nearest(plant)
        return bool(self.is_inside(theta[None, :])[0]) and self.members(theta[None, :]).contains(
            plant, tolerance=tolerance
        )


def spread_parameters(family: AbstractFamily) -> Float[np.ndarray, "member parameter"]:
    """A few hundred rows of parameter values: a coarse grid if it is small, and random ones."""
    theta = family.sample_parameters(jax.random.key(0), NUM_SPREAD)
    if 3 ** len(family.parameters) > NUM_SPREAD:
        return theta
    corners = np.array(list(itertools.product(*(parameter.points(3) for parameter in family.parameters))))
    return np.concatenate([corners[family.is_inside(corners)], theta])


def draw_distinct(family: AbstractFamily, key: Array, count: int) -> Float[np.ndarray, "member parameter"]:
    """Rows drawn at random, no two of them equal: from a family with choices only, at most all."""
    if any(parameter.low < parameter.high and not parameter.choices for parameter in family.parameters):
        return family.sample_parameters(key, count)
    choices = [parameter.points(1) for parameter in family.parameters]
    sizes = [len(values) for values in choices]
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    order = generator.choice(math.prod(sizes), min(math.prod(sizes), MAX_MEMBERS), replace=False)
    columns = zip(choices, np.unravel_index(order, sizes), strict=True)
    theta = np.stack([values[index] for values, index in columns], axis=1)
    return theta[family.is_inside(theta)][:count]


def draw_from_box(
    parameters: tuple[Parameter, ...], key: Array, count: int
) -> Float[np.ndarray, "member parameter"]:
    """Rows of values drawn uniformly from the intervals and the choices."""
    drawn = -(-count // AT_A_TIME) * AT_A_TIME  # more than are needed, so that few sizes are compiled
    uniform = np.asarray(jax.random.uniform(key, (drawn, len(parameters)), dtype=float))[:count]
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
