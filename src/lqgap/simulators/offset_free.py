"""Plants, classes and families with unknown loads on their inputs (`systems.loads`)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from lqgap.arguments import ArrayLike, MatrixLike, read_list
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.family import AbstractFamily
from lqgap.simulators.finite import Finite
from lqgap.simulators.parameters import Parameter
from lqgap.systems import LQG
from lqgap.systems.loads import velocity_form


class OffsetFree(AbstractFamily):
    """A family of plants in velocity form; parameters are those of the family inside."""

    family: AbstractFamily
    options: dict[str, Any]
    parameters: tuple[Parameter, ...] = eqx.field(static=True)

    def __init__(self, family: AbstractFamily, options: dict[str, Any]):
        self.family, self.options, self.parameters = family, options, family.parameters

    def build(self, **values: Any) -> LQG:
        """The plant of these parameter values, in velocity form."""
        return velocity_form(self.family.build(**values), **self.options)

    def is_inside(self, theta: np.ndarray) -> np.ndarray:
        """As in the family inside."""
        return self.family.is_inside(theta)

    def sample_parameters(self, key: Array, count: int) -> np.ndarray:
        """As in the family inside."""
        return self.family.sample_parameters(key, count)


def offset_free(
    plants: Any,
    *,
    load: ArrayLike,
    drift: ArrayLike,
    R: MatrixLike | None = None,
    inputs: Sequence[int] | None = None,
) -> Any:
    """A plant, class or family whose controllers let no constant load or reference leave an error.

    Inputs of what is returned are changes of those of the plants: `policies.Integrated` sums them up.

    Args:
        plants: an LQG, a batch of them, a finite class or a family; what is returned is of the same kind.
        load, drift: standard deviations of the loads at the start, and of their change in a step.
        R: weighs changes of inputs, where it is not that of the plants.
        inputs: numbers of those with a load; all if left out.
    """
    inputs = None if inputs is None else read_list("inputs", inputs)
    options = {"load": load, "drift": drift, "R": R, "inputs": inputs}
    if isinstance(plants, AbstractFamily | Finite):  # of these, one is checked
        velocity_form(plants[0] if isinstance(plants, Finite) else plants.nominal(), **options)
    if isinstance(plants, AbstractFamily):
        return OffsetFree(plants, options)
    if isinstance(plants, Finite):
        changed = offset_free(plants.systems, load=load, drift=drift, R=R, inputs=inputs)
        return Finite(changed, plants.parameters, names=plants.names, units=plants.units)
    if not isinstance(plants, LQG):
        raise InvalidArgumentError(f"plants is a {type(plants).__name__}, expected LQGs, a class or a family")
    if plants.A.ndim == 2:
        return velocity_form(plants, **options)
    return jax.vmap(lambda plant: velocity_form(plant, **options))(plants)
