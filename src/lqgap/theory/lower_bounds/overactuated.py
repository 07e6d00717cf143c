"""The class behind the lower bound: two plants that are hard to distinguish within a whole horizon.

Around a nominal plant (A, B, C) take (A, B + D) and (A, B - D) with D K = 0: under the nominal controller
both are the nominal plant, and nothing is learned unless a policy pays for it. Since

    K_h = R^-1 B'(P^-1 + B R^-1 B')^-1 A ,    D = radius v w' with B R^-1 w = 0

will do at every step: there must be more inputs than B has rank. v is the direction of the state along which
D changes the optimal gain most, the first left singular vector of P (A - BK).

The nominal controller has a gap of order H radius^2, so that

    radius = c H^-1/4   ("corrected") forces gaps of order sqrt(H) ,
    radius = c H^-1/2   ("printed")   forces nothing: its minimax gap stays bounded as H grows.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np

from lqgap.arguments import FloatLike, read_count, read_positive
from lqgap.errors import InvalidArgumentError
from lqgap.policies.policy import require_one_of
from lqgap.simulators import Finite
from lqgap.systems import LQG, closed_loop_matrix, solve

RATES = {"corrected": 0.25, "printed": 0.5}
MAX_HORIZON = 10_000_000
RANK_TOLERANCE = 1e-10  # relative to the largest singular value


def nominal_plant() -> LQG:
    """The smallest over-actuated plant: one state, and a second input that does nothing."""
    return LQG([[0.9]], [[0.6, 0.0]], [[1.0]])


def overactuated_class(
    plant: LQG | None = None,
    *,
    horizon: FloatLike,
    c: FloatLike = 0.5,
    radius: Literal["corrected", "printed"] = "corrected",
) -> Finite:
    """Two members on either side of a nominal plant, whose own controller does not reveal which is true.

    Args:
        plant: with more inputs than the rank of B; `nominal_plant()` if left out.
        c: the radius at horizon 1.
        radius: how it shrinks with the horizon.
    """
    plant = nominal_plant() if plant is None else plant
    horizon = read_count("horizon", horizon, least=1, most=MAX_HORIZON)
    require_one_of("radius", radius, tuple(RATES))
    size = read_positive("c", c) * horizon ** -RATES[radius]
    D = size * np.outer(_state_direction(plant), _idle_input(plant))
    members = [LQG(**(plant.matrices() | {"B": plant.B + sign * D})) for sign in (-1, 1)]
    return Finite(members, jnp.asarray([[-size], [size]]), names=["radius"])


def _idle_input(plant: LQG) -> np.ndarray:
    """A unit vector w with B R^-1 w = 0."""
    effect = np.asarray(plant.B) @ np.linalg.inv(plant.R)
    _, values, directions = np.linalg.svd(effect)
    if len(directions) == np.sum(values > RANK_TOLERANCE * max(values[0], np.finfo(float).tiny)):
        raise InvalidArgumentError(
            f"B has rank {len(directions)}, as many as inputs: without an input to spare, a change of B "
            f"shows under the nominal controller"
        )
    idle = directions[-1]
    return idle * np.sign(idle[np.argmax(np.abs(idle))])


def _state_direction(plant: LQG) -> np.ndarray:
    optimum = solve(plant)
    left = np.linalg.svd(np.asarray(optimum.P @ closed_loop_matrix(optimum, plant)))[0][:, 0]
    return left * np.sign(left[np.argmax(np.abs(left))])
