"""A finite class of simulators: one batched LQG and the parameters that made each member."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import (
    FloatLike,
    IntLike,
    MatrixLike,
    is_concrete,
    is_definite,
    read_array,
    read_count,
    read_key,
    read_list,
    read_numbers,
    read_positive,
    read_vector,
)
from lqgap.batches import batch_of_one, map_in_chunks, take
from lqgap.errors import InvalidArgumentError, InvalidSystemError, LqgapError, warn
from lqgap.simulators.invariants import invariants, unit_weights
from lqgap.systems import LQG, Optimum, change_coordinates, require_converged, solve, stack
from lqgap.systems.lqg import require_convex, require_density, require_single
from lqgap.systems.optimum import solve_members

MAX_MEMBERS = 1_000_000
IDENTITY_TOLERANCE = 1e-9  # relative distance of the invariants below which two plants are one


class Finite(eqx.Module):
    """Finitely many plants of one size.

    Args:
        systems: a batched LQG, or a list of LQGs.
        parameters: a row for each member; left out, the member's number.
    """

    systems: LQG
    parameters: Float[Array, "member parameter"]
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    radius: float  # every plant of the class this one covers is as near to a member; 0 if it is the class

    def __init__(
        self,
        systems: LQG | Sequence[LQG],
        parameters: Any = None,
        *,
        names: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
        radius: float = 0.0,
    ):
        self.systems = systems if isinstance(systems, LQG) else stack(systems)
        if self.systems.A.ndim != 3 or len(self.systems.A) == 0:
            raise InvalidSystemError(
                f"systems has A of shape {self.systems.A.shape}, expected (member, state, state) with "
                f"at least one member"
            )
        count = len(self.systems.A)
        parameters = np.arange(float(count))[:, None] if parameters is None else parameters
        if not isinstance(parameters, jax.Array):
            parameters = jax.device_put(read_numbers("parameters", parameters))
        if parameters.ndim != 2 or len(parameters) != count:
            raise InvalidArgumentError(
                f"parameters has shape {parameters.shape}, expected a row for each of {count} members"
            )
        self.parameters = parameters
        self.radius = radius
        columns = parameters.shape[1]
        default = ["member"] if columns == 1 else [f"t{i + 1}" for i in range(columns)]
        self.names = read_list("names", default if names is None else names)
        self.units = read_list("units", [""] * columns if units is None else units)
        if len(self.names) != columns or len(self.units) != columns:
            raise InvalidArgumentError(
                f"names and units have {len(self.names)} and {len(self.units)} entries, expected one for "
                f"each of the {columns} columns of parameters"
            )
        if is_concrete(self.systems):
            _require_valid(self)

    @staticmethod
    def of(members: Any, *, name: str = "members") -> "Finite":
        """A finite class as it is, and a batched LQG or one LQG as such a class."""
        if isinstance(members, Finite):
            return members
        if isinstance(members, LQG):
            return Finite(members if members.A.ndim == 3 else batch_of_one(members))
        raise InvalidArgumentError(
            f"{name} is a {type(members).__name__}, expected a finite class of simulators, or LQGs: a "
            f"family has members by .grid(points), .sample(count, key=key) or .cover(radius)"
        )

    def __len__(self) -> int:
        return len(self.systems.A)

    def __getitem__(self, index: int) -> LQG:
        if not isinstance(index, int | np.integer):
            raise InvalidArgumentError(
                f"index is {index!r}, expected the number of a member: members.subset(...) takes several"
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"member {index} of a class of {len(self)}")
        return take(self.systems, index)

    def __iter__(self) -> Iterator[LQG]:
        return (self[index] for index in range(len(self)))

    def system(self, index: int) -> LQG:
        """The member of this number."""
        return self[read_count("index", index, least=-len(self), most=len(self) - 1)]

    def describe(self, index: int) -> str:
        """The parameters of a member, for people: 'stiffness = 0.5 N/m, gain = 1'."""
        index = read_count("index", index, least=-len(self), most=len(self) - 1)
        return self.describe_values(np.asarray(self.parameters)[index])

    def describe_values(self, values: Any) -> str:
        """The same of any values of the parameters."""
        values = read_vector("values", values, size=len(self.names), why="one for each parameter").tolist()
        return ", ".join(
            f"{name} = {value:.6g}{' ' + unit if unit else ''}"
            for name, value, unit in zip(self.names, values, self.units, strict=True)
        )

    def subset(self, which: Any) -> "Finite":
        """The members of a boolean mask or a list of numbers, again as a class."""
        try:
            rows = np.arange(len(self))[np.asarray(which)]
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"which does not fit a class of {len(self)} members: {error}"
            ) from None
        if rows.size == 0:
            raise InvalidArgumentError(f"no member of the {len(self)} is left: the subset is empty")
        systems, parameters = take((self.systems, self.parameters), rows)
        return Finite(systems, parameters, names=self.names, units=self.units, radius=self.radius)

    def in_coordinates(self, T: MatrixLike) -> "Finite":
        """The members with the state T x: to inputs and outputs they are the same."""
        systems = _in_coordinates(self.systems, read_array("T", T, num_axes=2))
        return eqx.tree_at(lambda members: members.systems, self, systems)

    def grid(self, points: IntLike | Mapping[str, int] | None = None) -> "Finite":  # noqa: ARG002
        """The class itself: a finite class is its own grid."""
        return self

    def sample(self, count: IntLike, *, key: Array, replace: bool = False) -> "Finite":
        """Members drawn uniformly; none twice unless `replace`.

        Args:
            replace: whether a member may be drawn again, as the plants of an evaluation are.
        """
        count, key = read_count("count", count, least=1, most=MAX_MEMBERS), read_key(key)
        if replace:
            return self.subset(np.asarray(jax.random.randint(key, (count,), 0, len(self))))
        drawn = self.subset(np.asarray(jax.random.permutation(key, len(self)))[:count])
        warn_if_fewer(count, drawn)
        return drawn

    def optima(self) -> Optimum:
        """The optimum of every member; raises with the parameters of the first that has none."""
        solutions = solve_members(self.systems)
        if not bool(jnp.all(solutions.converged)):
            index = int(jnp.argmin(solutions.converged))
            raise member_error(self, index)
        return solutions

    def invariants(self, *, length: int | None = None, units: LQG | None = None) -> np.ndarray:
        """A row for each member: its predictor Markov parameters (2n of them by default) and S.

        Args:
            units: the plant in whose units they are; the first member if left out.
        """
        length = length or 2 * self.systems.num_states
        vectors = batch_invariants(self.systems, length=length, units=self[0] if units is None else units)
        finite = np.all(np.isfinite(vectors), axis=1)
        if not np.all(finite):
            raise member_error(self, int(np.argmin(finite)))
        return vectors

    def unique(self) -> "Finite":
        """The class without members that have the same input/output law as an earlier one."""
        vectors = self.invariants()
        is_kept = np.ones(len(self), dtype=bool)
        for index, near in _near_in_law(self, vectors):
            earlier = near[(near < index) & is_kept[near]]
            same = _same_law(self, vectors[earlier], vectors[index], tolerance=IDENTITY_TOLERANCE)
            is_kept[index] = not np.any(same)
        return self.subset(is_kept)

    def cover(self, radius: FloatLike) -> "Finite":
        """Members such that every member is within `radius` of one of them, in the invariants."""
        radius = read_positive("radius", radius)
        vectors = self.invariants()
        uncovered = np.ones(len(self), dtype=bool)
        chosen = []
        while np.any(uncovered):
            index = int(np.argmax(uncovered))
            chosen.append(index)
            uncovered &= np.linalg.norm(vectors - vectors[index], axis=1) > radius
        return eqx.tree_at(lambda members: members.radius, self.subset(chosen), self.radius + radius)

    def contains(self, plant: LQG, *, tolerance: float = 1e-6) -> bool:
        """Whether a member has the same input/output law as the plant, up to a relative tolerance."""
        require_comparable(self.systems, plant)
        length = self.systems.num_states + plant.num_states
        vector = Finite([plant]).invariants(length=length, units=self[0])[0]
        return bool(np.any(_same_law(self, self.invariants(length=length), vector, tolerance=tolerance)))


if TYPE_CHECKING:
    Members = Finite | LQG  # a finite class, a batched LQG, or one LQG
else:
    Members = Any


def warn_if_fewer(asked: int, drawn: Finite) -> None:
    """Say so if a sample has not as many members as were asked for."""
    if len(drawn) < asked:
        warn(f"a sample of {asked} members was asked for, and there are only {len(drawn)}: all are taken")


def require_comparable(systems: LQG, plant: LQG) -> None:
    """Raise unless the plant is one LQG with the inputs and outputs of the class."""
    require_single(plant)
    sizes = [(p.num_inputs, p.num_outputs) for p in (plant, systems)]
    if sizes[0] != sizes[1]:
        raise InvalidArgumentError(
            f"plant has (inputs, outputs) = {sizes[0]}, expected {sizes[1]} as in the class"
        )


def batch_invariants(systems: LQG, *, length: int, units: LQG) -> np.ndarray:
    """A row of invariants for each plant of a batch, in units of a plant."""
    vectors = np.asarray(map_in_chunks(lambda chunk: _invariants(chunk, length), systems))
    return vectors * unit_weights(units, length=length)


def member_error(members: Finite, index: int) -> LqgapError:
    """The error that says why a member has no optimum, with its parameters."""
    plant = members[index]
    try:
        require_converged(jax.jit(solve)(plant), plant)
    except LqgapError as error:
        return type(error)(f"member {index} ({members.describe(index)}): {error}")
    return InvalidSystemError(f"member {index} ({members.describe(index)}) has no optimum")


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None))
def _in_coordinates(plant: LQG, T: Array) -> LQG:
    return change_coordinates(plant, T)


@eqx.filter_jit
def _invariants(systems: LQG, length: int) -> Array:
    return jax.vmap(lambda plant: invariants(plant, length=length))(systems)


def _near_in_law(members: Finite, vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """In order, the members that are not alone, with all that may have their law: no N^2 comparisons.

    Members of one law have nearly one projection on any line, so that neighbours on a random one are enough.
    """
    rng, marks, blocks = np.random.default_rng(0), np.zeros(len(vectors)), _blocks(members, vectors)
    for block in blocks:
        direction = rng.normal(size=block.shape[1])
        size = np.linalg.norm(direction) * np.max(np.linalg.norm(block, axis=1), initial=0)
        marks += block @ (direction / (size or 1.0))
    width = 2 * IDENTITY_TOLERANCE * len(blocks)  # and as much again for rounding
    order = np.argsort(marks)
    first, last = (np.searchsorted(marks[order], marks + reach) for reach in (-width, width))
    return ((index, order[first[index] : last[index]]) for index in np.flatnonzero(last - first > 1).tolist())


def _same_law(members: Finite, vectors: np.ndarray, vector: np.ndarray, *, tolerance: float) -> np.ndarray:
    """Which rows agree with a vector in each of its blocks, relative to that block: units do not matter."""
    same = np.ones(len(vectors), dtype=bool)
    for rows, row in zip(_blocks(members, vectors), _blocks(members, vector[None]), strict=True):
        size = np.maximum(np.linalg.norm(rows, axis=1), np.linalg.norm(row))
        same &= np.linalg.norm(rows - row, axis=1) <= tolerance * size
    return same


def _blocks(members: Finite, vectors: np.ndarray) -> list[np.ndarray]:
    """The parts of vectors of invariants: responses to outputs, to inputs, and S."""
    p, m = members.systems.num_outputs, members.systems.num_inputs
    length = (vectors.shape[1] - p * p) // (p * (p + m))
    return np.split(vectors, np.cumsum([length * p * p, length * p * m]), axis=1)


def _require_valid(members: Finite) -> None:
    """What the constructor of LQG checks, for members that were built under `vmap`."""
    for name, matrices in members.systems.matrices().items():
        finite = np.all(np.isfinite(np.asarray(matrices)), axis=(1, 2))
        if not np.all(finite):
            index = int(np.argmin(finite))
            raise InvalidSystemError(
                f"{name} of member {index} ({members.describe(index)}) has entries that are NaN or infinite, "
                f"or is a weight or covariance that is not symmetric"
            )
    for name in ("Q", "R", "W", "V", "S0"):
        matrices, strictly = np.asarray(getattr(members.systems, name)), name == "R"
        bad = ~is_definite(matrices, strictly=strictly)
        if np.any(bad):
            index = int(np.argmax(bad))
            raise InvalidSystemError(
                f"{name} of member {index} ({members.describe(index)}) is not positive "
                f"{'definite' if strictly else 'semidefinite'}: its smallest eigenvalue is "
                f"{np.linalg.eigvalsh(matrices[index])[0]:.3g}"
            )
    where = lambda index: f" of member {index} ({members.describe(index)})"  # noqa: E731
    require_density(members.systems, where)
    require_convex(members.systems, where)
