"""The evidence of the observations for each member, and against the class as a whole.

All members' filters run side by side, e_i ~ N(0, S_i) the innovation of member i if it is the truth, white.

    likelihood   l_i = sum_t log N(e_i; 0, S_i) ;   set = { i : l_i >= log mean_j exp l_j - log 1/delta }
    misfit       by alternatives to N(0, S_i) whose densities, over that of member i, have mean one:
                 innovations c times as large,      g(t) = c^{-p/2} exp(q_t (1 - 1/c) / 2) ,
                 or correlated with the one before, g(t) = exp(r e_{t-1}' S_i^-1 e_t - r^2 q'_t / 2) ,
                 with q = e_t' S_i^-1 e_t , q' = e_{t-1}' S_i^-1 e_{t-1} ; one where a part is lost.

Each alternative may begin to hold at any step s, with the prior 1 / ((s+1)(s+2)); all have equal weights.
The mixture of their likelihood ratios,

    E_i(t) = mean_g R_g(t) + 1 / (t+2) ,    R_g(t) = (R_g(t-1) + 1 / ((t+1)(t+2))) g(t) ,

is a martingale that starts at one if i is the truth; by Ville's inequality it ever reaches 1/delta with
probability delta at most. The class is refuted when all members' mixtures have: under every policy, a true
member is thrown away with probability delta at most. The sets themselves are never empty. No member leads by
more than 30 nats (`systems.faults`), by which delta becomes delta (1 + t e^-30) before step t.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.systems import LQG, Optimum
from lqgap.systems.faults import Gate
from lqgap.systems.innovation import InnovationLaw, fill_innovation, innovation_law
from lqgap.systems.losses import AbstractLosses, Losses, NoLosses
from lqgap.systems.settling import MOST, settle_filters

SCALES = (0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 4.0, 16.0)
CORRELATIONS = (-0.5, -0.25, 0.25, 0.5)
LARGEST = 1e300  # that a ratio is kept as: far beyond what refutes


class MemberFilters(eqx.Module):
    """The filters of a batch of plants; after the last entry of the stacks they are steady.

    Args:
        is_exact: from the first step on; if not, they are steady from it on.
    """

    A: Float[Array, "member state state"]
    B: Float[Array, "member state input"]
    C: Float[Array, "member output state"]
    L: Float[Array, "time member state output"]
    law: InnovationLaw  # of every step and member

    def __init__(self, systems: LQG, optima: Optimum, *, is_exact: bool = True):
        self.A, self.B, self.C = systems.A, systems.B, systems.C
        if not is_exact:
            self.L, self.law = optima.L[None], _laws(optima.S[None])
            return
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
    innovation: Float[Array, "member output"]  # the last one; zero after a loss
    log_likelihood: Float[Array, " member"]
    ratios: Float[Array, "alternative member"]  # R_g
    losses: AbstractLosses  # of every member
    gate: Gate
    time: Int[Array, ""]
    age: Int[Array, ""]  # of the test, which may begin anew

    @staticmethod
    def empty(filters: MemberFilters) -> "Evidence":
        """Before the first observation."""
        count, (p, n) = len(filters.A), filters.C.shape[1:]
        shapes, dtype = ((count, n), (count, p), (count,)), filters.A.dtype
        xhat, innovation, log_likelihood = (jnp.zeros(shape, dtype) for shape in shapes)
        return Evidence(
            xhat=xhat,
            innovation=innovation,
            log_likelihood=log_likelihood,
            ratios=jnp.zeros((len(SCALES) + len(CORRELATIONS), count), dtype),
            losses=jax.vmap(Losses)(jnp.zeros_like(filters.A)),
            gate=Gate.unused(),
            time=jnp.asarray(0),
            age=jnp.asarray(0),
        )

    def observe(
        self,
        filters: MemberFilters,
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],
        *,
        has_gate: bool = False,
    ) -> tuple["Evidence", Float[Array, " output"]]:
        """Take in y_t, components of which may be lost (NaN), and the input applied before it.

        Args:
            has_gate: whether a sample that is absurd to every member counts as lost (`systems.faults`).

        Returns:
            The evidence after it, and the observation as it was taken.
        """
        planned = filters.at(self.time)
        L, law = self._gains_now(filters, *planned)
        predicted = jnp.einsum("kij,kj->ki", filters.A, self.xhat) + filters.B @ u_last
        e = y[None, :] - jnp.einsum("kij,kj->ki", filters.C, predicted)
        filled = fill_innovation(e, law, jnp.isnan(y))
        gate = self.gate.judge(filled.distance, len(y)) if has_gate else self.gate
        y = jnp.where(gate.is_lost, jnp.nan, y)
        is_lost, e = jnp.isnan(y), jnp.where(gate.is_lost, 0.0, filled.innovation)
        losses = jax.vmap(lambda losses, *model: losses.after(*model, ~is_lost))(
            self.losses, filters.A, filters.C, planned[0], planned[1].S
        )
        past = jnp.where(jnp.any(is_lost), 0.0, self.innovation)
        whitened = jnp.einsum("kij,kj->ki", law.precision, e)
        ratio = _log_ratios(
            squares=jnp.sum(e * whitened, axis=1),
            products=jnp.sum(past * whitened, axis=1),
            before=jnp.einsum("ki,kij,kj->k", past, law.precision, past),
            num_seen=jnp.sum(~is_lost),
        )
        age, dtype = self.age.astype(self.ratios.dtype), self.ratios.dtype
        begins_now, largest = 1 / ((age + 1) * (age + 2)), min(LARGEST, float(jnp.finfo(dtype).max))
        after = Evidence(
            xhat=predicted + jnp.einsum("kij,kj->ki", L, e),
            innovation=jnp.where(jnp.any(is_lost), 0.0, e),
            log_likelihood=gate.weigh(self.log_likelihood, filled, jnp.sum(~is_lost)),
            ratios=jnp.minimum((self.ratios + begins_now) * jnp.exp(ratio), largest),
            losses=losses,
            gate=gate,
            time=self.time + 1,
            age=self.age + 1,
        )
        return after, y

    def likely_members(
        self, among: Bool[Array, " member"], *, delta: Float[Array, ""]
    ) -> Bool[Array, " member"]:
        """The given members that the likelihood leaves; the likeliest of them always is."""
        return likely_members(self.log_likelihood, among, delta=delta)

    def misfit(self) -> Float[Array, ""]:
        """log min_i E_i: the evidence of the innovations against the best-fitting member."""
        mixture = jnp.mean(self.ratios, axis=0) + 1 / (self.age.astype(self.ratios.dtype) + 1)
        return jnp.log(jnp.min(mixture))

    def begin_anew(self, when: Bool[Array, ""]) -> "Evidence":
        """The same beliefs with nothing known of the members; nothing changes unless `when`."""
        return replace(
            self,
            log_likelihood=jnp.where(when, 0.0, self.log_likelihood),
            ratios=jnp.where(when, 0.0, self.ratios),
            age=jnp.where(when, 0, self.age),
        )

    def _gains_now(self, filters: MemberFilters, L: Array, law: InnovationLaw) -> tuple[Array, InnovationLaw]:
        """The planned gains and laws, changed by what was lost before."""
        if isinstance(self.losses, NoLosses):
            return L, law
        L, S = jax.vmap(lambda losses, *model: losses.gains(*model))(self.losses, filters.C, L, law.S)
        return L, jax.vmap(innovation_law)(S)


def likely_members(
    log_likelihood: Float[Array, " member"], among: Bool[Array, " member"], *, delta: Float[Array, ""]
) -> Bool[Array, " member"]:
    """The given members that log-likelihoods leave; the likeliest of them always is."""
    mixture = jax.nn.logsumexp(log_likelihood) - jnp.log(len(log_likelihood))
    best = jnp.argmax(jnp.where(among, log_likelihood, -jnp.inf))
    is_likely = log_likelihood >= mixture + jnp.log(delta)
    return among & (is_likely | (jnp.arange(len(among)) == best))


def _log_ratios(
    *, squares: Array, products: Array, before: Array, num_seen: Array
) -> Float[Array, "alternative member"]:
    """log g of all alternatives."""
    scales, r = (jnp.asarray(values, squares.dtype)[:, None] for values in (SCALES, CORRELATIONS))
    by_size = -0.5 * num_seen.astype(squares.dtype) * jnp.log(scales) + 0.5 * (1 - 1 / scales) * squares[None]
    by_past = r * products[None] - 0.5 * r**2 * before[None]
    return jnp.concatenate([by_size, by_past])


_laws = jax.jit(jax.vmap(jax.vmap(innovation_law)))  # of every step and member
