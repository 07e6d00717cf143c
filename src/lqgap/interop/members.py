"""The plants of episodes: drawn from a family, from a finite class, or the same one again.

Members are drawn for several episodes ahead (`DrawnMembers`), because building them one by one is slow.
"""

import abc
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from lqgap.arguments import read_count, require_double_precision
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError, did_you_mean
from lqgap.simulators import AbstractFamily, Finite, plants
from lqgap.simulators.parameters import read_values, require_names
from lqgap.systems import LQG, stack

NUM_AHEAD = 16  # episodes for which members are drawn at a time
MAX_EXAMPLES = 64


class Plants(eqx.Module):
    """Plants in NumPy, one after the other; noise is its root times a standard normal vector."""

    dynamics: Float[np.ndarray, "plant state state_and_input"]  # [A B]
    C: Float[np.ndarray, "plant output state"]
    cost: Float[np.ndarray, "plant output_and_input output_and_input"]  # diag(Q, R)
    W_root: Float[np.ndarray, "plant state state"]
    V_root: Float[np.ndarray, "plant output output"]
    S0_root: Float[np.ndarray, "plant state state"]


class DrawnMembers(eqx.Module):
    """Members drawn ahead; `members` counts within a finite class and is -1 in a family."""

    plants: Plants
    members: Int[np.ndarray, " plant"]
    parameters: Float[np.ndarray, "plant parameter"]


class AbstractMembers(abc.ABC):
    """A source of members."""

    names: tuple[str, ...]

    @abc.abstractmethod
    def draw(self, generators: Sequence[np.random.Generator]) -> list[DrawnMembers]:
        """Members drawn by each generator."""

    @abc.abstractmethod
    def fix(self, *, member: Any, parameters: Any) -> DrawnMembers:
        """The one member of this number or of these parameters; the other is None."""

    @abc.abstractmethod
    def examples(self) -> LQG:
        """Some members, always the same."""


class ListedMembers(AbstractMembers):
    """The members of a finite class, drawn uniformly with replacement."""

    def __init__(self, members: Finite, *, names: tuple[str, ...]):
        self.names = names
        self._finite = members
        self._plants = as_plants(members.systems)
        self._parameters = np.asarray(members.parameters)[:, : len(names)]

    def draw(self, generators: Sequence[np.random.Generator]) -> list[DrawnMembers]:
        """Numbers, then the plants of these numbers."""
        return [
            self._drawn(generator.integers(len(self._finite), size=NUM_AHEAD)) for generator in generators
        ]

    def fix(self, *, member: Any, parameters: Any) -> DrawnMembers:
        """By number, or by parameters that one of the members has."""
        if parameters is not None:
            return self._drawn(np.array([self._find(parameters)]))
        if isinstance(member, bool) or not isinstance(member, int | np.integer):
            raise InvalidArgumentError(f"options has member = {member!r}, expected a whole number")
        if not 0 <= member < len(self._finite):
            raise InvalidArgumentError(
                f"options has member = {member}, expected one from 0 to {len(self._finite) - 1}"
            )
        return self._drawn(np.array([member]))

    def examples(self) -> LQG:
        """All members, or as many of them, evenly spaced."""
        which = np.unique(np.linspace(0, len(self._finite) - 1, MAX_EXAMPLES).astype(int))
        return take(self._finite.systems, which)

    def _drawn(self, numbers: np.ndarray) -> DrawnMembers:
        return DrawnMembers(take(self._plants, numbers), numbers, self._parameters[numbers])

    def _find(self, parameters: Any) -> int:
        _require_mapping(parameters)
        require_names(parameters, self.names)
        match = np.ones(len(self._finite), dtype=bool)
        for name, value in parameters.items():
            column = self._parameters[:, self.names.index(name)]
            match &= np.isclose(column, _read_number(name, value), rtol=1e-9, atol=0)
        if np.sum(match) != 1:
            raise InvalidArgumentError(
                f"options has parameters = {dict(parameters)}, and {np.sum(match)} of {len(match)} members "
                f"have them, expected one: give the number of the member"
            )
        return int(np.argmax(match))


class FamilyMembers(AbstractMembers):
    """The members of a family, drawn as its `sample` does."""

    def __init__(self, family: AbstractFamily):
        self.names = family.names
        self._family = family

    def draw(self, generators: Sequence[np.random.Generator]) -> list[DrawnMembers]:
        """Parameters by every generator, then all plants at once."""
        keys = [jax.random.key(int(generator.integers(2**32))) for generator in generators]
        drawn = [np.asarray(self._family.sample_parameters(key, NUM_AHEAD)) for key in keys]
        built = as_plants(self._family.members(np.concatenate(drawn)).systems)
        parts = np.arange(len(drawn) * NUM_AHEAD).reshape(-1, NUM_AHEAD)
        return [_unnumbered(take(built, part), rows) for part, rows in zip(parts, drawn, strict=True)]

    def fix(self, *, member: Any, parameters: Any) -> DrawnMembers:
        """By parameters only."""
        if parameters is None:
            raise InvalidArgumentError(
                f"options has member = {member!r}, but a family has no numbered members: give parameters, a "
                f"mapping with {', '.join(self.names)}"
            )
        _require_mapping(parameters)
        plant = self._family.system(parameters)
        row = read_values(self._family.parameters, parameters)[None]
        return _unnumbered(as_plants(stack([plant])), row)

    def examples(self) -> LQG:
        """A sample."""
        return self._family.sample(NUM_AHEAD, key=jax.random.key(0), replace=True).systems


def read_family(family: Any) -> AbstractMembers:
    """What a user may give for a family: its name, itself, a finite class, LQGs, or one LQG."""
    require_double_precision()
    if isinstance(family, str):
        return FamilyMembers(_find_family(family))
    if isinstance(family, AbstractFamily):
        return FamilyMembers(family)
    if isinstance(family, Finite):
        return ListedMembers(family, names=family.names)
    if isinstance(family, LQG):
        return ListedMembers(Finite(stack([family]) if family.A.ndim == 2 else family), names=())
    raise InvalidArgumentError(
        f"family is a {type(family).__name__}, expected a family or a finite class of simulators, one LQG, "
        f"or the name of a built-in family"
    )


def read_seed(seed: Any) -> int | None:
    """What Gymnasium takes as a seed."""
    return None if seed is None else read_count("seed", seed, least=0, most=2**63)


def read_fixed(members: AbstractMembers, options: Any) -> DrawnMembers | None:
    """The member that the options of a reset ask for, if they do."""
    options = {} if options is None else options
    _require_mapping(options)
    for name in options:
        if name not in ("member", "parameters"):
            raise InvalidArgumentError(f"options has {name!r}, expected 'member' or 'parameters'")
    if not options:
        return None
    if len(options) > 1:
        raise InvalidArgumentError("options has both member and parameters: give one of them")
    return members.fix(member=options.get("member"), parameters=options.get("parameters"))


def as_plants(systems: LQG) -> Plants:
    """A batched LQG in NumPy."""
    A, B, C, Q, R = (np.asarray(getattr(systems, name)) for name in ("A", "B", "C", "Q", "R"))
    W_root, V_root, S0_root = (_root(np.asarray(getattr(systems, name))) for name in ("W", "V", "S0"))
    count, outputs, inputs = len(A), Q.shape[1], R.shape[1]
    cost = np.zeros((count, outputs + inputs, outputs + inputs))
    cost[:, :outputs, :outputs], cost[:, outputs:, outputs:] = Q, R
    dynamics = np.concatenate([A, B], axis=2)
    return Plants(dynamics, C, cost, W_root=W_root, V_root=V_root, S0_root=S0_root)


def _root(covariances: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariances)
    return (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def _unnumbered(members: Plants, parameters: np.ndarray) -> DrawnMembers:
    return DrawnMembers(members, np.full(len(parameters), -1), parameters)


@functools.cache  # so that what was compiled for a family serves all its environments
def _find_family(name: str) -> AbstractFamily:
    known = plants.FAMILIES
    if name not in known:
        hint = did_you_mean(name, known)
        raise InvalidArgumentError(f"there is no family {name!r}{hint} (`lqgap plants` lists them)")
    return known[name]()


def _read_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"options has {name} = {value!r}, expected a number") from None


def _require_mapping(options: Any) -> None:
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(f"options has {options!r}, expected a mapping from names to values")
