"""Certainty equivalence without a class: act by the optimal controller of the likeliest model.

    u = -G chi + sigma t^-1/4 probe ,      models at doubling times, from all samples (`identified.loop`)

H. Mania, S. Tu, B. Recht, Certainty equivalence is efficient for linear quadratic control (2019), whose
models come from random inputs; M. Simchowitz, D. Foster, Naive exploration is optimal for online LQR (2020),
with the probe. Guarantee: an error of the model costs its square, so that random or probing steps of order
sqrt(T) leave a regret of order sqrt(T). Under any one such controller n m directions of the model leave no
trace in the data.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lqgap.adaptive.identified.certain import AbstractCertain
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.identified.loop import FIRST
from lqgap.adaptive.identified.optimism import Optimism
from lqgap.arguments import FloatLike, read_not_negative


class IdentifiedCertaintyEquivalence(AbstractCertain):
    """The optimal controller of the model that is likeliest so far.

    Args:
        plant: what is told of it.
        probing: sigma, the size of the probe relative to the cost; 0.3 for plants whose inputs move little.
    """

    plant: UnknownPlant
    probing: Float[Array, ""]
    optimism: Optimism | None
    first_fit: Int[Array, ""]

    def __init__(self, plant: UnknownPlant, *, probing: FloatLike = 0.0):
        self.plant, self.optimism = plant, None
        self.first_fit = jnp.asarray(FIRST * plant.num_features)
        self.probing = jnp.asarray(read_not_negative("probing", probing), dtype=jnp.float64)
