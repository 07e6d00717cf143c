"""Faults of a sensor: what a sample counts for that is absurd to every model, and when it counts as lost.

    absurd:     P(chi^2_p > q / s) < 1e-9 ,    q = min e' S^-1 e   over all models
    scale s:    log s = mean of log q over about the last sixty samples, above that of chi^2_p ;
                s = 1 as long as this is less than one, as it is where a model is right
    evidence:   l_i <- max(l_i + log N(e_i; 0, s S_i), max_j l_j - 30) ,   all relative to the largest;
                of an absurd sample  - (p/2) log q_i - 1/2 log det S_i  in place of the density

Absurd samples may be faults of the sensor, but also a jump of the state, a first state far off, or a plant
that no model is like. So two samples that are not absurd buy the right to lose one, three at most are saved
up, and the first fifty lose none. The evidence of an absurd sample that is taken in is that of a normal law
whose size is not known: a burst that is the same to all models says next to nothing, a state far off still
tells them apart. With noise ten times as large as all models say, s is a hundred, and nothing is absurd.

No lead is larger than 30 nats, so that a burst, or a plant that has changed, is overcome within a time that
does not grow with the time before. A true model is ever e^a times less likely than the mean of all, before
step t, with probability e^-a (1 + t e^-30) at most: the bound costs nothing.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from scipy.special import chdtri, digamma

from lqgap.systems.innovation import Filled

ABSURD = 1e-9  # probability below which a sample is absurd: six standard deviations
CALM, MAX_LOST, FIRST = 2, 3, 50
FASTEST = 10  # samples that the first mean of log q is over
MISFIT = 1.0  # of log s: less is chance, of probability 2e-8 a sample
LEAD = 30.0  # nats
TINY = 1e-30


class Gate(eqx.Module):
    """What is known of the size of innovations, what has been saved up, and what the last sample was."""

    credit: Int[Array, ""]  # samples that were not absurd, of which CALM pay for one that counts as lost
    is_absurd: Bool[Array, ""]
    is_lost: Bool[Array, ""]
    log_scale: Float[Array, ""]  # log s, if it is larger than MISFIT

    @staticmethod
    def unused() -> "Gate":
        """Before the first sample."""
        no = jnp.asarray(False)
        return Gate(jnp.asarray(CALM - FIRST), no, no, jnp.zeros(()))

    @property
    def scale(self) -> Float[Array, ""]:
        """How much larger than any model says the covariance of innovations is."""
        return jnp.where(self.log_scale > MISFIT, jnp.exp(self.log_scale), 1.0)

    def judge(self, distances: Float[Array, "..."], num_outputs: int) -> "Gate":
        """After another sample with these e' S^-1 e, one for each model."""
        nearest = jax.lax.stop_gradient(jnp.min(distances)).astype(self.log_scale.dtype)
        limit = self.scale * chdtri(num_outputs, ABSURD)
        is_absurd = nearest > limit
        is_lost = is_absurd & (self.credit >= CALM)
        change = jnp.where(is_lost, -CALM, jnp.where(is_absurd, 0, 1))
        size = jnp.log(jnp.clip(nearest, TINY, limit)) - digamma(num_outputs / 2) - math.log(2)
        moved = jnp.where(nearest > 0, size - self.log_scale, 0) / (FASTEST + FIRST - CALM + self.credit)
        credit = jnp.minimum(self.credit + change, MAX_LOST * CALM)
        return Gate(credit, is_absurd, is_lost, self.log_scale + moved)

    def weigh(
        self,
        log_likelihood: Float[Array, " model"],
        filled: Filled,
        num_seen: Int[Array, ""],
    ) -> Float[Array, " model"]:
        """The log-likelihoods after the sample that was judged, relative to the largest.

        Args:
            filled: the innovation of every model.
            num_seen: how many components of it were seen.
        """
        distance = filled.distance
        of_unknown_size = num_seen * jnp.log(jnp.maximum(distance, TINY))
        counted = jnp.where(self.is_absurd, of_unknown_size, distance / self.scale.astype(distance.dtype))
        evidence = jnp.where(self.is_lost, 0, filled.peak - 0.5 * counted)
        total = log_likelihood + evidence
        return jnp.maximum(total - jnp.max(total), -LEAD)
