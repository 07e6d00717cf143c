"""The low-rank class of the paper: every plant is a combination of a few known ones.

    (A, B, C) = sum_i t_i (A_i, B_i, C_i)

with the coefficients t_i as its parameters.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from lqgap.arguments import read_list
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.simulators.family import AbstractFamily, draw_from_box
from lqgap.simulators.parameters import Parameter, read_parameter
from lqgap.systems import LQG, stack


class LinearSpan(AbstractFamily):
    """All combinations of the bases with coefficients in their intervals.

    Args:
        bases: LQGs of one size with the same cost and noise.
        coefficients: an interval (low, high) for each base; (1, 1) fixes an offset.
    """

    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    bases: LQG

    def __init__(self, bases: Sequence[LQG], coefficients: Sequence[Any]):
        self.bases = stack(bases)
        bases, coefficients = list(bases), read_list("coefficients", coefficients)
        if len(coefficients) != len(bases):
            raise InvalidArgumentError(
                f"coefficients has {len(coefficients)} entries, expected an interval for each of the "
                f"{len(bases)} bases"
            )
        for name in ("Q", "R", "W", "V", "S0"):
            matrices = np.asarray(getattr(self.bases, name))
            if not np.allclose(matrices, matrices[:1], rtol=1e-12, atol=0):
                raise InvalidSystemError(f"{name} differs between the bases: only A, B and C are combined")
        self.parameters = tuple(
            read_parameter(f"t{index + 1}", extent) for index, extent in enumerate(coefficients)
        )

    def build(self, **values: Any) -> LQG:
        """The combination with these coefficients."""
        terms = [take(self.bases, i) for i in range(len(self.parameters))]
        A, B, C = (
            sum(values[p.name] * getattr(term, name) for p, term in zip(self.parameters, terms, strict=True))
            for name in "ABC"
        )
        shared = {name: getattr(terms[0], name) for name in ("Q", "R", "W", "V", "S0")}
        return LQG(A, B, C, **shared)

    def is_inside(self, theta: np.ndarray) -> np.ndarray:
        """Every point of the box of coefficients belongs to the family."""
        return np.ones(len(theta), dtype=bool)

    def sample_parameters(self, key: Array, count: int) -> np.ndarray:
        """Uniformly from the box."""
        return draw_from_box(self.parameters, key, count)
