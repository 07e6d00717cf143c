"""A bank of filters that says how much each member's controller counts.

    mixture      u = - sum_i w_i K_i xhat^i
    likeliest    u = - K_j xhat^j ,   j = argmax_i l_i ,  ties to the lowest index
    hysteresis   u = - K_c xhat^c ,   c <- j  when  l_j - l_c >= h  and tau steps have passed since the last
                 switch, or when  l_j - l_c >= log(N / delta)

References: Magill (1965) and Athans et al. (1977) for the mixture, multiple-model adaptive control; Morse
(1996) and Hespanha, Liberzon, Morse (2003) for supervisory switching.
Guarantee: with hysteresis as published, whose leads are not bounded, finitely many switches; of the mixture
none. Where the members' inputs cancel, that of the likeliest is played.

The dwell time must exceed what a jump takes to decay. A long one holds on to a member that destabilises the
plant, which the last condition prevents; without it (`delta=None`) the switching is as published.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.adaptive.over_class.candidates import (
    DELTA,
    AbstractClassLearner,
    Candidates,
    ClassMemory,
    refutation,
    weights,
)
from lqgap.arguments import FloatLike, IntLike, read_count, read_positive
from lqgap.policies.bank import mix
from lqgap.policies.policy import require_one_of
from lqgap.simulators.finite import Members

RULES = ("mixture", "likeliest", "hysteresis")


class FilterBank(AbstractClassLearner):
    """The controllers of all members, mixed or switched by their likelihoods.

    Args:
        margin: h, of hysteresis.
        dwell: tau, in steps.
        delta: with which a true member may be overridden within its dwell time; None for never.
        horizon: the last step of a task that ends; None for one that goes on.
    """

    candidates: Candidates
    rule: str = eqx.field(static=True)
    margin: Float[Array, ""]
    dwell: Int[Array, ""]
    refuted_at: Float[Array, ""]

    def __init__(
        self,
        members: Members,
        rule: Literal["mixture", "likeliest", "hysteresis"] = "mixture",
        *,
        margin: FloatLike = 1.0,
        dwell: IntLike = 5,
        delta: FloatLike | None = DELTA,
        horizon: IntLike | None = None,
    ):
        require_one_of("rule", rule, RULES)
        self.candidates, self.rule = Candidates(members, horizon=horizon), rule
        self.margin = jnp.asarray(read_positive("margin", margin))
        self.dwell = jnp.asarray(read_count("dwell", dwell, least=0, most=1_000_000))
        self.refuted_at = refutation(delta, len(self.candidates.members))

    def first(self) -> Int[Array, ""]:
        """No steps since the last switch."""
        return jnp.asarray(0)

    def choose(self, memory: ClassMemory, key: PRNGKeyArray) -> tuple[Int[Array, ""], Int[Array, ""]]:  # noqa: ARG002
        """The likeliest member, or by hysteresis that before."""
        log_likelihood, age = memory.evidence.log_likelihood, memory.rule + 1
        best = jnp.argmax(log_likelihood)
        if self.rule != "hysteresis":
            return best, age
        lead = log_likelihood[best] - log_likelihood[memory.acts_on]
        is_due = ((lead >= self.margin) & (age >= self.dwell)) | (lead >= self.refuted_at)
        switches = (is_due & (best != memory.acts_on)) | (memory.evidence.time == 1)
        return jnp.where(switches, best, memory.acts_on), jnp.where(switches, 0, age)

    def act(self, memory: ClassMemory, key: PRNGKeyArray) -> Float[Array, " input"]:  # noqa: ARG002
        """The mean of all inputs, or that of the member chosen."""
        inputs = self.candidates.inputs(memory)
        return mix(weights(memory.evidence), inputs) if self.rule == "mixture" else inputs[memory.acts_on]
