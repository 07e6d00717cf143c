"""Certainty equivalence over a class: the controller of the likeliest member, refitted now and then.

    c = argmax_i l_i    at t = 1, 2, 4, 8, .. observations, and when  max_i l_i - l_c >= log(N / delta)
    u = - K_c xhat^c + sigma_0 t^{-1/4} eta_t ,     eta_t ~ N(0, (J/m) M^-1) , J and M^-1 means over members

References: Mania, Tu, Recht (2019); with probing the naive exploration of Simchowitz and Foster (2020).
Guarantee: an error eps of the model costs O(eps^2) a step; with probing, regret of order sqrt(T).

A term independent of the past with covariance (sigma^2 J/m) M^-1 adds exactly sigma^2 J to the expected
excess of its step on a plant with this M and J: sigma is relative, and probing costs 2 sigma_0^2 J sqrt(T).
The schedule as published (`delta=None`) has no second rule, and holds on to a member that destabilises the
plant for a whole epoch.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.adaptive.over_class.candidates import (
    DELTA,
    AbstractClassLearner,
    Candidates,
    ClassMemory,
    refutation,
)
from lqgap.arguments import FloatLike, IntLike, read_not_negative
from lqgap.simulators.finite import Members


class CertaintyEquivalence(AbstractClassLearner):
    """The controller of the member that was likeliest at the last refit.

    Args:
        probing: sigma_0, the standard deviation of the probing term at first in units of the optimal cost.
        delta: with which a true member may be dropped between doublings; None to refit at doublings alone.
        horizon: the last step of a task that ends; None for one that goes on.
    """

    candidates: Candidates
    probe_root: Float[Array, "input input"]  # times sigma_0
    refuted_at: Float[Array, ""]

    def __init__(
        self,
        members: Members,
        *,
        probing: FloatLike = 0.0,
        delta: FloatLike | None = DELTA,
        horizon: IntLike | None = None,
    ):
        self.candidates = Candidates(members, horizon=horizon)
        self.refuted_at = refutation(delta, len(self.members))
        optima = self.members.optima()
        unit = jnp.mean(optima.J) * jnp.mean(jnp.linalg.inv(optima.M), axis=0) / self.num_inputs
        sigma = read_not_negative("probing", probing)
        self.probe_root = sigma * jnp.linalg.cholesky(unit)

    def first(self) -> None:
        """Nothing."""

    def choose(self, memory: ClassMemory, key: PRNGKeyArray) -> tuple[Int[Array, ""], None]:  # noqa: ARG002
        """The likeliest member where a refit is due."""
        count, log_likelihood = memory.evidence.time, memory.evidence.log_likelihood
        lead = jnp.max(log_likelihood) - log_likelihood[memory.acts_on]
        is_due = (count & (count - 1) == 0) | (lead >= self.refuted_at)
        return jnp.where(is_due, jnp.argmax(log_likelihood), memory.acts_on), None

    def act(self, memory: ClassMemory, key: PRNGKeyArray) -> Float[Array, " input"]:
        """Its input, and the probe."""
        u = self.candidates.inputs(memory)[memory.acts_on]
        decay = memory.evidence.time.astype(u.dtype) ** -0.25
        return u + decay * self.probe_root.astype(u.dtype) @ jax.random.normal(key, u.shape, u.dtype)
