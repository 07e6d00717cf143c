"""Explore, then commit: random inputs for a while, then the controller of the most optimistic plant for good.

    T_w = max(2d, H^2/3) ,    theta~ = argmin J over the confidence set ,    u = -G(theta~) chi

S. Lale, K. Azizzadenesheli, B. Hassibi, A. Anandkumar, Regret minimization in partially observable linear
quadratic control (2020). Guarantee: regret of order T^2/3, as optimism is analysed to first order in the
radius of the set.

As printed it regresses y on inputs alone, which takes 1 / (1 - rho(A)) lags, and minimises over balls around
matrices, which depend on coordinates and leave the truth out. Here the regression is that of the predictor,
and the set that of its Markov parameters (`identified.optimism`). The guard still makes a new model where it
trips.
"""

import math
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lqgap.adaptive.identified.certain import AbstractCertain
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.identified.loop import FIRST
from lqgap.adaptive.identified.optimism import Optimism
from lqgap.arguments import FloatLike, IntLike, read_count
from lqgap.errors import InvalidArgumentError

LONGEST = 100_000_000


class ExploreThenCommit(AbstractCertain):
    """Random inputs for so long as suits a horizon, then one controller.

    Args:
        plant: what is told of it.
        horizon: for which the exploration is chosen, H^2/3 steps; the policy goes on after it.
        num_random: in place of these steps.
        confidence: of the set; None for the likeliest model, without optimism.
    """

    plant: UnknownPlant
    probing: Float[Array, ""]
    optimism: Optimism | None
    first_fit: Int[Array, ""]  # when the exploration ends
    has_refits: ClassVar[bool] = False

    def __init__(
        self,
        plant: UnknownPlant,
        *,
        horizon: IntLike | None = None,
        num_random: IntLike | None = None,
        confidence: FloatLike | None = 0.95,
    ):
        if (horizon is None) == (num_random is None):
            raise InvalidArgumentError(
                "give a horizon or num_random, one of the two: how long is it to explore?"
            )
        self.plant, self.probing = plant, jnp.asarray(0.0)
        self.optimism = None if confidence is None else Optimism(plant, confidence=confidence)
        least = FIRST * plant.num_features
        if num_random is None:
            steps = read_count("horizon", horizon, least=1, most=LONGEST)
            num_random = max(least, math.ceil(steps ** (2 / 3)))
        self.first_fit = jnp.asarray(read_count("num_random", num_random, least=least, most=LONGEST))
