"""Value-target regression: the samples of each step, and the sets that they leave.

A sample E_t is what was observed and applied up to step t. Its target Y is the bias, by the model acted on,
of what comes true at t + 1; all members predict it from the last `length` observations and inputs: f_i(E_t).
A sample is formed with the input that was asked for, and again if another one was applied. One whose window
has a lost observation is left out. All predictions are one batched product.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.adaptive.vtr.calibration import VTRConstants
from lqgap.adaptive.vtr.options import VTROptions
from lqgap.adaptive.vtr.statistics import Statistics
from lqgap.batches import take
from lqgap.linalg import quadratic
from lqgap.systems import LQG, Optimum, ValueTarget, arx_matrix, steady_predict, value_target
from lqgap.systems.window import clipping_error


class TargetMemory(eqx.Module):
    """The window, the sums, and the sample whose observation is yet to come."""

    past_inputs: Float[Array, "lag input"]  # newest first
    past_outputs: Float[Array, "lag output"]
    since_loss: Int[Array, ""]  # steps since an observation was lost
    statistics: Statistics
    score: Float[Array, ""]  # that triggered the last switch
    has_sample: Bool[Array, ""]
    u: Float[Array, " input"]  # that the sample was formed with
    target: ValueTarget
    predictions: Float[Array, " member"]
    weight: Float[Array, ""]
    clip_error: Float[Array, ""]  # of the model's prediction, in standard deviations of the innovation


class ValueTargets(eqx.Module):
    """The members as predictors of value targets."""

    systems: LQG
    optima: Optimum
    precision: Float[Array, "member output output"]  # S^-1
    N: Float[Array, "member output window"]
    clip_norms: Float[Array, " member"]  # |S^-1/2 C Abar^length A|: what clipping leaves out
    constants: VTRConstants
    options: VTROptions

    def __init__(self, systems: LQG, optima: Optimum, constants: VTRConstants, options: VTROptions):
        self.systems, self.optima, self.constants, self.options = systems, optima, constants, options
        self.precision = jnp.linalg.inv(optima.S)
        self.N, self.clip_norms = clip_models(optima, systems, constants.length)

    def init(self) -> TargetMemory:
        """Before the first observation."""
        count, (p, _), m = len(self.systems.A), self.systems.C.shape[1:], self.systems.B.shape[2]
        length, zero = self.constants.length, jnp.asarray(0.0)
        return TargetMemory(
            past_inputs=jnp.zeros((length, m)),
            past_outputs=jnp.zeros((length, p)),
            since_loss=jnp.asarray(length),
            statistics=Statistics.empty(count),
            score=zero,
            has_sample=jnp.asarray(False),
            u=jnp.zeros(m),
            target=ValueTarget(jnp.zeros((p, p)), jnp.zeros(p), zero),
            predictions=jnp.zeros(count),
            weight=zero,
            clip_error=zero,
        )

    def observe(
        self,
        memory: TargetMemory,
        xhat: Float[Array, "member state"],
        acts_on: Int[Array, ""],
        possible: Bool[Array, " member"],
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],
    ) -> tuple[TargetMemory, Bool[Array, ""]]:
        """Complete the sample of the step before, made with the beliefs of that step; and is a switch due?"""
        memory = jax.lax.cond(
            memory.has_sample & jnp.any(u_last != memory.u),
            lambda: self.sample(memory, xhat, acts_on, possible, u_last, is_wanted=memory.has_sample),
            lambda: memory,
        )
        is_lost = jnp.any(jnp.isnan(y))
        is_there = memory.has_sample & ~is_lost
        weight, target = jnp.where(is_there, memory.weight, 0.0), jnp.where(is_there, memory.target(y), 0.0)
        statistics = memory.statistics.add(memory.predictions, target, weight=weight)
        is_due = is_there & (statistics.score(psi=self.constants.psi) >= 1)
        memory = replace(
            memory,
            past_inputs=_push(memory.past_inputs, u_last),
            past_outputs=_push(memory.past_outputs, jnp.where(is_lost, 0.0, y)),
            since_loss=jnp.where(is_lost, 0, memory.since_loss + 1),
            statistics=statistics,
        )
        return memory, is_due

    def merge(self, memory: TargetMemory) -> TargetMemory:
        """At a switch: the new samples join those that the set rests on."""
        reached = memory.statistics.score(psi=self.constants.psi)
        return replace(memory, statistics=memory.statistics.merge(), score=reached)

    def possible_members(self, memory: TargetMemory, among: Bool[Array, " member"]) -> Bool[Array, " member"]:
        """The given members that are near the estimate."""
        return memory.statistics.confidence_set(among, beta=self.constants.beta)

    def sample(
        self,
        memory: TargetMemory,
        xhat: Float[Array, "member state"],
        acts_on: Int[Array, ""],
        possible: Bool[Array, " member"],
        u: Float[Array, " input"],
        *,
        is_wanted: Bool[Array, ""],
    ) -> TargetMemory:
        """The sample of this step with input u, and the error of clipping in the model's own prediction."""
        plant, optimum, belief = take((self.systems, self.optima, xhat), acts_on)
        target = value_target(optimum, plant, belief, u)
        eta = jnp.concatenate([memory.past_inputs.ravel(), memory.past_outputs.ravel(), u])
        expected = plant.C @ steady_predict(plant, belief, u)
        is_whole = memory.since_loss >= self.constants.length
        if self.options.history == "clipped":
            means = self.N @ eta
        else:
            means = jax.vmap(lambda system, x: system.C @ steady_predict(system, x, u))(self.systems, xhat)
        predictions = jax.vmap(target.mean)(means, self.optima.S)
        weight = jnp.ones_like(target.constant)
        if self.options.weighting == "variance":
            variances = jax.vmap(target.variance)(means, self.optima.S)
            weight = 1 / jnp.max(jnp.where(possible, variances, 0.0))
        error = jnp.sqrt(quadratic(self.N[acts_on] @ eta - expected, self.precision[acts_on]))
        return replace(
            memory,
            has_sample=is_wanted & (is_whole | (self.options.history == "full")),
            u=u,
            target=target,
            predictions=predictions,
            weight=weight,
            clip_error=jnp.where(is_whole, error, jnp.nan),
        )


@eqx.filter_jit
def clip_models(optima: Optimum, systems: LQG, length: int) -> tuple[Array, Array]:
    """N of every member, and the norm of what it leaves out, in standard deviations of the innovation."""

    def of_member(optimum: Optimum, plant: LQG) -> tuple[Array, Array]:
        error = clipping_error(optimum, plant, length=length)
        return arx_matrix(optimum, plant, length=length), jnp.linalg.norm(error, 2)

    return jax.vmap(of_member)(optima, systems)


def _push(rows: Array, newest: Array) -> Array:
    return jnp.concatenate([newest[None], rows[:-1]])
