"""The evidence of the observations for each member, and against the class as a whole.

All members' exact filters run side by side, e_i ~ N(0, S_i) the innovation of member i if it is the truth.

    likelihood   l_i = sum_t log N(e_i; 0, S_i) ;   set = { i : l_i >= log mean_j exp l_j - log 1/delta }
    misfit       with q = e_i' S_i^-1 e_i ~ chi^2_p, the density of an innovation c times as large, over that
                 of member i, is  g_c(q) = c^{-p/2} exp(q (1 - 1/c) / 2) , of mean one if i is the truth.

An alternative is that from some step s on innovations are c times too large or too small, with the prior
1 / ((s+1)(s+2)) on s and equal weights on c. The mixture of their likelihood ratios,

    E_i(t) = mean_c R_c(t) + 1 / (t+2) ,    R_c(t) = (R_c(t-1) + 1 / ((t+1)(t+2))) g_c(q_t) ,

is a martingale that starts at one if i is the truth; by Ville's inequality it ever reaches 1/delta with
probability delta at most. The class is refuted when all members' mixtures have: under every policy, a true
member is thrown away with probability delta at most. The sets themselves are never empty.

Where the true plant is not a member, the nearest one has innovations up to 1 + slack times too large, and
only what is beyond that counts against it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.linalg import quadratic
from lqgap.systems import LQG, Optimum
from lqgap.systems.innovation import InnovationLaw, filter_step, innovation_law
from lqgap.systems.settling import MOST, settle_filters

SCALES = (0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 4.0, 16.0)
LARGEST = 1e300  # that a ratio is kept as: far beyond what refutes


class ExactFilters(eqx.Module):
    """The exact filters of a batch of plants; after the last step of the stacks they are steady."""

    A: Float[Array, "member state state"]
    B: Float[Array, "member state input"]
    C: Float[Array, "member output state"]
    L: Float[Array, "time member state output"]
    law: InnovationLaw  # of every step and member

    def __init__(self, systems: LQG, optima: Optimum):
        self.A, self.B, self.C = systems.A, systems.B, systems.C
        gains = settle_filters(systems, optima)
        if not gains.is_settled:
            raise InvalidArgumentError(
                f"some member's filter has not settled after {MOST} steps: narrow the ranges of the "
                f"family (lqgap check names the member whose predictor is slowest), or leave out vtr"
            )
        self.L, self.law = gains.L, _laws(gains.S)

    def at(self, time: Int[Array, ""]) -> tuple[Array, InnovationLaw]:
        """The gains of a step, and how its innovations are distributed."""
        return take((self.L, self.law), jnp.minimum(time, len(self.L) - 1))


class Evidence(eqx.Module):
    """What has been observed, in numbers that do not grow."""

    xhat: Float[Array, "member state"]
    log_likelihood: Float[Array, " member"]
    ratios: Float[Array, "scale member"]  # R_c
    time: Int[Array, ""]

    @staticmethod
    def empty(filters: ExactFilters) -> "Evidence":
        """Before the first observation."""
        count = len(filters.A)
        ratios = jnp.zeros((len(SCALES), count))
        return Evidence(jnp.zeros(filters.A.shape[:2]), jnp.zeros(count), ratios, jnp.asarray(0))

    def observe(
        self,
        filters: ExactFilters,
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],
        *,
        slack: Float[Array, ""],
    ) -> "Evidence":
        """Take in y_t, components of which may be lost (NaN), and the input applied before it."""
        L, law = filters.at(self.time)
        filtered = jax.vmap(filter_step, in_axes=(0, 0, 0, 0, 0, 0, None, None))(
            filters.A, filters.B, filters.C, L, law, self.xhat, u_last, y
        )
        squares = jax.vmap(quadratic)(filtered.innovation, law.precision)

        scales = jnp.asarray(SCALES)[:, None]
        fair = jnp.where(scales > 1, 1 / (1 + slack), 1 + slack)
        num_seen = jnp.sum(~jnp.isnan(y))
        step = jnp.exp(-0.5 * num_seen * jnp.log(scales) + 0.5 * (1 - 1 / scales) * fair * squares[None])
        begins_now = 1 / ((self.time + 1.0) * (self.time + 2.0))
        return Evidence(
            xhat=filtered.xhat,
            log_likelihood=self.log_likelihood + filtered.log_density,
            ratios=jnp.minimum((self.ratios + begins_now) * step, LARGEST),
            time=self.time + 1,
        )

    def likely_members(self, *, delta: Float[Array, ""]) -> Bool[Array, " member"]:
        """The members that the likelihood leaves; the likeliest always is."""
        mixture = jax.nn.logsumexp(self.log_likelihood) - jnp.log(len(self.log_likelihood))
        return self.log_likelihood >= mixture + jnp.log(delta)

    def misfit(self) -> Float[Array, ""]:
        """log min_i E_i: the evidence of the innovations against the best-fitting member."""
        mixture = jnp.mean(self.ratios, axis=0) + 1 / (self.time + 1.0)
        return jnp.log(jnp.min(mixture))


_laws = jax.jit(jax.vmap(jax.vmap(innovation_law)))  # of every step and member
