"""A finer class for a plant between the members: a regular grid of the family.

A plant between the members is not one of them, and the likelihood settles on the nearest, whose controller
loses something at every step. On a grid that is k times finer it loses about k^2 times less.
"""

import math

import numpy as np

from lqgap.errors import InvalidArgumentError
from lqgap.simulators import AbstractFamily, Finite
from lqgap.systems.optimum import solve_members

MAX_REFINED = 128  # members, whose N^2 excesses are found once


def refine(family: AbstractFamily | Finite, members: Finite) -> Finite:
    """A grid of the family of up to 128 members that have an optimum, if it is finer than the members."""
    if isinstance(family, Finite):
        return members
    choices = math.prod(len(parameter.choices) for parameter in family.parameters if parameter.choices)
    free = sum(not parameter.choices for parameter in family.parameters)
    points = int((MAX_REFINED / choices) ** (1 / max(free, 1)) + 1e-9)
    if free == 0 or choices * points**free <= len(members):
        return members
    grid = family.grid(points)
    sizes = [(each.num_states, each.num_inputs, each.num_outputs) for each in (grid.systems, members.systems)]
    if sizes[0] != sizes[1]:
        raise InvalidArgumentError(
            f"family has (states, inputs, outputs) = {sizes[0]}, and the members {sizes[1]}"
        )
    return grid.subset(np.asarray(solve_members(grid.systems).converged))
