"""The regression of `markov`, one sample at a time, with the last samples kept.

A window z_t = (phi_t, y_t) that is complete adds z z' to the moments, whatever chose the inputs: the
innovation is independent of the past under every policy, so that closed loops do not bias the estimate. Lost
samples are NaN, and so are those before the first: windows with one of them are left out.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.identification.markov import MarkovEstimate, Moments, regress

LARGEST = 1e100  # of a sample: beyond it squares are lost, and so is the sample


class Stream(eqx.Module):
    """The last samples, newest first, an observation whose input is not known yet, and the moments."""

    y: Float[Array, "past output"]
    u: Float[Array, "past input"]
    latest: Float[Array, " output"]
    moments: Moments


class MarkovRegression(eqx.Module):
    """Markov parameters of a stream of samples.

    Args:
        length: of the windows, in lags.
        num_kept: how many samples are kept, at least as many as lags.
    """

    length: int = eqx.field(static=True)
    num_outputs: int = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)
    num_kept: int = eqx.field(static=True)
    ridge: float = eqx.field(static=True, default=1.0)

    @property
    def num_features(self) -> int:
        """Of phi."""
        return self.length * (self.num_outputs + self.num_inputs)

    def init(self) -> Stream:
        """Before any sample."""
        size = self.num_features + self.num_outputs
        return Stream(
            y=jnp.full((self.num_kept, self.num_outputs), jnp.nan),
            u=jnp.zeros((self.num_kept, self.num_inputs)),
            latest=jnp.full(self.num_outputs, jnp.nan),
            moments=Moments(jnp.zeros((size, size)), jnp.asarray(0)),
        )

    def step(self, stream: Stream, y: Float[Array, " output"], u_last: Float[Array, " input"]) -> Stream:
        """Take in the input that followed the last observation, and the next observation."""
        ys = jnp.concatenate([stream.latest[None], stream.y[:-1]])
        us = jnp.concatenate([u_last[None], stream.u[:-1]])
        z = jnp.concatenate([ys[: self.length].ravel(), us[: self.length].ravel(), y])
        is_complete = jnp.all(jnp.abs(z) < LARGEST)
        z = jnp.where(is_complete, z, 0)
        moments = Moments(stream.moments.total + jnp.outer(z, z), stream.moments.count + is_complete)
        return Stream(ys, us, y, moments)

    def estimate(
        self, stream: Stream, *, y_scale: Float[Array, " output"], u_scale: Float[Array, " input"]
    ) -> MarkovEstimate:
        """What the samples so far say, of y and u in these units, in which the ridge is meant, too."""
        scale = jnp.concatenate([jnp.tile(y_scale, self.length), jnp.tile(u_scale, self.length), y_scale])
        total = stream.moments.total / scale[:, None] / scale[None, :]
        sizes = self.length, self.num_outputs, self.num_inputs
        return regress(Moments(total, stream.moments.count), sizes, jnp.asarray(self.ridge, total.dtype))
