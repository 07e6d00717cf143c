"""All plants near a nominal one: every entry, or each matrix in the spectral norm, within a radius."""

from collections.abc import Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.arguments import read_positive
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.family import AbstractFamily, draw_from_box
from lqgap.simulators.parameters import Parameter, require_names
from lqgap.systems import LQG

UNCERTAIN = ("A", "B", "C")


class Ball(AbstractFamily):
    """The plants whose matrices deviate from the nominal ones by at most the radius.

    Args:
        radius: one for A, B and C, or a mapping with those that are uncertain, as {"A": 0.1, "B": 0.05}.
        norm: "entries" bounds every entry, "spectral" the largest singular value of each deviation.
    """

    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    nominal_plant: LQG
    radii: tuple[tuple[str, float], ...] = eqx.field(static=True)
    norm: str = eqx.field(static=True)

    def __init__(self, plant: LQG, *, radius: Any, norm: Literal["entries", "spectral"] = "entries"):
        if norm not in ("entries", "spectral"):
            raise InvalidArgumentError(f"norm is {norm!r}, expected 'entries' or 'spectral'")
        radius = radius if isinstance(radius, Mapping) else dict.fromkeys(UNCERTAIN, radius)
        require_names(radius, UNCERTAIN)
        self.nominal_plant, self.norm = plant, norm
        self.radii = tuple((name, read_positive(f"radius of {name}", r)) for name, r in radius.items())
        self.parameters = tuple(
            Parameter(f"{name}{i + 1}{j + 1}", float(matrix[i, j]) - r, float(matrix[i, j]) + r)
            for name, r in self.radii
            for matrix in [np.asarray(getattr(plant, name))]
            for i, j in np.ndindex(matrix.shape)
        )

    def build(self, **values: Any) -> LQG:
        """The plant with these entries."""
        plant = self.nominal_plant
        matrices = plant.matrices()
        for name, _ in self.radii:
            rows, columns = matrices[name].shape
            matrices[name] = jnp.asarray(
                [[values[f"{name}{i + 1}{j + 1}"] for j in range(columns)] for i in range(rows)]
            )
        return LQG(**matrices)

    def is_inside(self, theta: np.ndarray) -> np.ndarray:
        """Which rows are within the radius in the chosen norm."""
        inside = np.ones(len(theta), dtype=bool)
        if self.norm == "spectral":
            for radius, deviation in self._deviations(theta):
                inside &= np.linalg.norm(deviation, ord=2, axis=(1, 2)) <= radius * (1 + 1e-12)
        return inside

    def sample_parameters(self, key: Array, count: int) -> np.ndarray:
        """Random directions of every size up to the radius (in the spectral norm, not quite uniform)."""
        if self.norm == "entries":
            return draw_from_box(self.parameters, key, count)
        key_direction, key_size = jax.random.split(key)
        centre = np.array([parameter.middle for parameter in self.parameters])
        theta = np.tile(centre, (count, 1)) + np.asarray(
            jax.random.normal(key_direction, (count, len(centre)), dtype=float)
        )
        sizes = np.asarray(jax.random.uniform(key_size, (count, len(self.radii)), dtype=float))
        columns = []
        for index, (radius, deviation) in enumerate(self._deviations(theta)):
            flat = deviation.reshape(count, -1)
            scale = radius * sizes[:, index] ** (1 / flat.shape[1])
            columns.append(flat * (scale / np.linalg.norm(deviation, ord=2, axis=(1, 2)))[:, None])
        return centre + np.concatenate(columns, axis=1)

    def _deviations(self, theta: np.ndarray) -> list[tuple[float, np.ndarray]]:
        deviations, start = [], 0
        for name, radius in self.radii:
            matrix = np.asarray(getattr(self.nominal_plant, name))
            entries = theta[:, start : start + matrix.size].reshape(-1, *matrix.shape)
            deviations.append((radius, entries - matrix))
            start += matrix.size
        return deviations
