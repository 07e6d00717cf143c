"""AdaptOn: disturbance response control with an operator that is identified anew in doubling epochs.

    u_t = u^0_t + sum_{k<r} taps[k] f_{t-k} ,      models at 4d, 8d, 16d, .. from all samples; the taps stay

S. Lale, K. Azizzadenesheli, B. Hassibi, A. Anandkumar, Logarithmic regret bound in partially observable
linear dynamical systems (2020). Guarantee: regret of order polylog(T) against the best taps, if the closed
loop excites all directions of the operator.

As printed: gradient steps 12 / (alpha t) on nature's y (`update="strong gradient", feature="nature"`), with a
ball and an alpha from unknown constants, which is slow. The default is Newton's step on innovations, whose
sums are kept over the epochs.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int

from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.identified.responding import WARM_UP, AbstractResponding
from lqgap.adaptive.identified.response import Feature, Response, Update
from lqgap.arguments import FloatLike, IntLike


class AdaptOn(AbstractResponding):
    """Learned taps on the disturbances of the model that is likeliest so far.

    Args:
        plant: what is told of it.
        memory: how many disturbances count.
        update: "newton", "gradient" or "strong gradient".
        feature: "innovations" or "nature".
        regularization: of Newton's steps; larger is slower and safer.
    """

    plant: UnknownPlant
    response: Response
    first_fit: Int[Array, ""]

    def __init__(
        self,
        plant: UnknownPlant,
        *,
        memory: IntLike = 10,
        update: Update = "newton",
        feature: Feature = "innovations",
        regularization: FloatLike = 5.0,
    ):
        self.plant = plant
        self.first_fit = jnp.asarray(WARM_UP * plant.num_features)
        self.response = Response(
            plant.Q, plant.R, memory=memory, update=update, feature=feature, regularization=regularization
        )
