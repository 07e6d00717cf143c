"""LqgOpt: optimism in epochs of doubling length, with models from all samples, those of the closed loop too.

    theta~ = argmin J over the confidence set (`identified.optimism`) ,    u = -G(theta~) chi ,    anew at 2t

S. Lale, K. Azizzadenesheli, B. Hassibi, A. Anandkumar, Adaptive control and regret minimization in linear
quadratic Gaussian (LQG) setting (2021). Guarantee: regret of order sqrt(T), if the optimal controllers of the
set excite all directions of the plant, which no single one does.

As printed, the length of the warm-up and the radii are functions of unknown constants. Here the warm-up ends
when the controller stabilises what the data leave possible, a model that does not is passed over, and there
is a guard.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lqgap.adaptive.identified.certain import AbstractCertain
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.identified.loop import FIRST
from lqgap.adaptive.identified.optimism import Optimism
from lqgap.arguments import FloatLike


class LqgOpt(AbstractCertain):
    """The optimal controller of the most optimistic plant that the samples so far leave possible.

    Args:
        plant: what is told of it.
        confidence: of the set.
    """

    plant: UnknownPlant
    probing: Float[Array, ""]
    optimism: Optimism | None
    first_fit: Int[Array, ""]

    def __init__(self, plant: UnknownPlant, *, confidence: FloatLike = 0.95):
        self.plant, self.probing = plant, jnp.asarray(0.0)
        self.first_fit = jnp.asarray(FIRST * plant.num_features)
        self.optimism = Optimism(plant, confidence=confidence)
