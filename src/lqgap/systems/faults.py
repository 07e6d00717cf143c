"""Faults of a sensor: a sample that is absurd to every model counts as lost, if such samples are rare.

    absurd:   P(chi^2_p > min e' S^-1 e) < 1e-50      over all models

It may also be a jump of the state, a first state far off, or a plant that no model is like. So fifty samples
that are not absurd buy the right to lose one, three at most are saved up, and an absurd sample that is taken
in for want of it ends what was saved.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from scipy.special import chdtri

ABSURD = 1e-50  # probability below which a sample is absurd
CALM, MAX_LOST = 50, 3


class Gate(eqx.Module):
    """What has been saved up, and whether the last sample counts as lost."""

    credit: Int[Array, ""]  # samples that were not absurd, of which CALM pay for one that counts as lost
    is_lost: Bool[Array, ""]

    @staticmethod
    def unused() -> "Gate":
        """Before the first sample."""
        return Gate(jnp.asarray(0), jnp.asarray(False))

    def judge(self, is_absurd: Bool[Array, ""]) -> "Gate":
        """After another sample."""
        is_lost = is_absurd & (self.credit >= CALM)
        saved = jnp.where(is_absurd, 0, jnp.minimum(self.credit + 1, MAX_LOST * CALM))
        return Gate(jnp.where(is_lost, self.credit - CALM, saved), is_lost)


def is_absurd(distances: Float[Array, "..."], num_outputs: int) -> Bool[Array, ""]:
    """Whether a sample with these e' S^-1 e, one for each model, is absurd to all of them."""
    return jnp.min(distances) > chdtri(num_outputs, ABSURD)
