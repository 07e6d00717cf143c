"""Families given by a function of named parameters."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from lqgap.errors import InvalidArgumentError
from lqgap.simulators.family import AbstractFamily, draw_from_box
from lqgap.simulators.parameters import Parameter, read_parameter, require_names
from lqgap.systems import LQG, Signals

NOTHING_KNOWN = Signals()


class ParameterBox(AbstractFamily):
    """All plants `build(**parameters)` with every parameter in its interval or among its choices.

    Args:
        build: a function of the parameters by name; if JAX can trace it, members are built in one compiled
            batch and can be differentiated, else one by one.
        parameters: a pair (low, high) for an interval, a list for a few values to choose from.
        units: a unit by parameter name, for people.
        signals: sampling time, names and limits of what all members have in common.
    """

    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    function: Callable[..., LQG] = eqx.field(static=True)
    signals: Signals = eqx.field(static=True)

    def __init__(
        self,
        build: Callable[..., LQG],
        parameters: Mapping[str, Any],
        *,
        units: Mapping[str, str] | None = None,
        signals: Signals = NOTHING_KNOWN,
    ):
        if not isinstance(parameters, Mapping) or len(parameters) == 0:
            raise InvalidArgumentError(
                f"parameters is {parameters!r}, expected a mapping from names to intervals (low, high)"
            )
        units = {} if units is None else units
        if not isinstance(units, Mapping):
            raise InvalidArgumentError(f"units is {units!r:.100}, expected a mapping from names to units")
        require_names(units, parameters)
        self.function, self.signals = build, signals
        self.parameters = tuple(
            read_parameter(name, extent, units.get(name, "")) for name, extent in parameters.items()
        )

    def build(self, **values: Any) -> LQG:
        """The plant of these parameter values."""
        return self.function(**values)

    @property
    def plant_of(self) -> Callable[..., LQG]:
        """The function given."""
        return self.function

    def is_inside(self, theta: np.ndarray) -> np.ndarray:
        """Every point of the box belongs to the family."""
        return np.ones(len(theta), dtype=bool)

    def sample_parameters(self, key: Array, count: int) -> np.ndarray:
        """Uniformly from the box."""
        return draw_from_box(self.parameters, key, count)
