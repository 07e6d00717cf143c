"""From parameter values to plants: compiled in batches where JAX can trace `build`, one by one where not.

A discrete parameter (a delay, a sign) reaches `build` as a plain Python number, so that it may decide shapes
and branches; each combination of them is a `Branch`, in which only continuous parameters are left.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.batches import join, map_in_chunks, take
from lqgap.errors import InvalidArgumentError, InvalidSystemError, LqgapError
from lqgap.simulators.parameters import Parameter
from lqgap.systems import LQG, stack


class Formula(eqx.Module):
    """What is left of a branch without ranges: what programs are compiled for, whatever the ranges are."""

    build: Callable[..., LQG]
    names: tuple[str, ...] = eqx.field(static=True)  # of the continuous parameters
    held: tuple[tuple[str, Any], ...] = eqx.field(static=True)

    def plant(self, values: Any) -> LQG:
        """The plant of these values of the continuous parameters."""
        named = {name: values[i] for i, name in enumerate(self.names)}
        plant = self.build(**dict(self.held), **named)
        if not isinstance(plant, LQG):
            raise InvalidSystemError(f"build returned a {type(plant).__name__}, expected an lqgap.LQG")
        return plant


class Branch(eqx.Module):
    """A family with its discrete parameters held; `parameters` are all of them."""

    build: Callable[..., LQG]
    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    held: tuple[tuple[str, Any], ...] = eqx.field(static=True)

    @property
    def names(self) -> list[str]:
        """The names of all parameters, in order."""
        return [parameter.name for parameter in self.parameters]

    @property
    def columns(self) -> list[int]:
        """Which parameters are continuous, by number."""
        held = dict(self.held)
        return [column for column, name in enumerate(self.names) if name not in held]

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and the upper ends of the continuous parameters' intervals."""
        continuous = [self.parameters[column] for column in self.columns]
        return np.array([p.low for p in continuous]), np.array([p.high for p in continuous])

    @property
    def formula(self) -> Formula:
        """The plant as a function of the continuous parameters."""
        return Formula(self.build, tuple(self.names[column] for column in self.columns), self.held)

    @property
    def is_traceable(self) -> bool:
        """Whether `build` can be jitted and differentiated in this branch."""
        try:
            jax.eval_shape(self.formula.plant, jax.ShapeDtypeStruct((len(self.columns),), jnp.float64))
        except Exception:  # see _build_group
            return False
        return True

    def rows_of(self, theta: Float[np.ndarray, "member parameter"]) -> np.ndarray:
        """Which rows of parameter values belong to this branch."""
        match = np.ones(len(theta), dtype=bool)
        for name, value in self.held:
            column = theta[:, self.names.index(name)]
            match &= np.isclose(column, value, rtol=1e-9, atol=0)
        return np.flatnonzero(match)

    def plant(self, values: Any) -> LQG:
        """The plant of these values of the continuous parameters."""
        return self.formula.plant(values)

    def describe(self, row: Float[np.ndarray, " parameter"]) -> str:
        """A row of parameter values, for people."""
        return ", ".join(f"{name} = {value:g}" for name, value in zip(self.names, row, strict=True))


def make_branches(build: Callable[..., LQG], parameters: tuple[Parameter, ...]) -> list[Branch]:
    """Every combination of the discrete parameters; one if there are none."""
    discrete = [parameter for parameter in parameters if parameter.choices]
    values = [[int(c) if float(c).is_integer() else c for c in parameter.choices] for parameter in discrete]
    names = [parameter.name for parameter in discrete]
    return [
        Branch(build, parameters, tuple(zip(names, combination, strict=True)))
        for combination in itertools.product(*values)
    ]


def branch_of(theta: Float[np.ndarray, " parameter"], branches: Sequence[Branch]) -> Branch:
    """The branch to which a row of parameter values belongs."""
    return next(branch for branch in branches if len(branch.rows_of(theta[None, :])))


def build_members(branches: Sequence[Branch], theta: Float[np.ndarray, "member parameter"]) -> LQG:
    """The plants of the rows of a table of parameter values, as a batch."""
    groups = [(branch, branch.rows_of(theta)) for branch in branches]
    groups = [(branch, rows) for branch, rows in groups if len(rows)]
    if sum(len(rows) for _, rows in groups) < len(theta):
        raise InvalidArgumentError("theta has values of a discrete parameter that are none of its choices")
    plants = [_build_group(branch, theta[rows]) for branch, rows in groups]
    for (branch, rows), plant in zip(groups, plants, strict=True):
        _require_size(branch, plant, plants[0], theta[rows[0]])
    order = np.argsort(np.concatenate([rows for _, rows in groups]))
    return take(join(plants), order)


def _build_group(branch: Branch, theta: np.ndarray) -> LQG:
    try:
        # Two of one plant, so that a single one is built by the program of many.
        values = theta[:, branch.columns][np.minimum(np.arange(max(2, len(theta))), len(theta) - 1)]
        plants = take(map_in_chunks(partial(_build_mapped, branch.formula), values), np.arange(len(theta)))
    except Exception:  # plain Python inside `build` fails under tracing in many ways: one by one, then
        plants = [_build_one(branch, row) for row in theta]
        for row, plant in zip(theta, plants, strict=True):
            _require_size(branch, plant, plants[0], row)
        return stack(plants)
    is_finite = [
        np.isfinite(matrix).all(axis=(1, 2)) for matrix in map(np.asarray, plants.matrices().values())
    ]
    for row in theta[~np.all(is_finite, axis=0)]:
        _build_one(branch, row)  # which says what is wrong with it
    return plants


@eqx.filter_jit
def _build_mapped(formula: Formula, values: Float[Array | np.ndarray, "member parameter"]) -> LQG:
    return jax.vmap(formula.plant)(values)


def _build_one(branch: Branch, row: np.ndarray) -> LQG:
    try:
        return branch.formula.plant([float(value) for value in row[branch.columns]])
    except LqgapError as error:
        raise type(error)(f"{error} (member {branch.describe(row)})") from None
    except Exception as error:  # whatever the user's function raises, the parameters are what helps
        reason = f"{type(error).__name__}: {error}"
        raise InvalidSystemError(f"build failed at {branch.describe(row)}: {reason}") from error


def _require_size(branch: Branch, plant: LQG, first: LQG, row: np.ndarray) -> None:
    sizes = [(p.num_states, p.num_inputs, p.num_outputs) for p in (plant, first)]
    if sizes[0] != sizes[1]:
        raise InvalidSystemError(
            f"build gives (states, inputs, outputs) = {sizes[0]} at {branch.describe(row)} and {sizes[1]} "
            f"elsewhere: all members must be of one size; pad the smaller, for example with delay states"
        )
