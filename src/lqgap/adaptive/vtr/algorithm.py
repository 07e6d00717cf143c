"""LQG-VTR: act by the most optimistic member that the samples leave.

At each step t

    a  y_t completes the sample E_{t-1}: its target Y is the bias, by the model acted on, of what came true;
    b  at the end of the warm-up, model selection leaves the members U_1;
    c  if the importance score reaches one, the samples are merged, the member of U_1 with the smallest loss
       and the set around it are found anew, and the member of the set with the smallest J is acted on;
    d  u_t = -K xhat_{t|t} of that model, from the whole history; random during the warm-up. If xhat leaves a
       ball, or the observations fit no member, control passes to a fallback permanently;
    e  all members predict the next target from the last `length` observations and inputs: f_i(E_t).

No input is chosen at the last step, nor a sample formed. A sample whose window has a lost observation is left
out. All filters and all predictions are one batched product each, and a step costs the same however many came
before it. With a family, whose plants lie between the members, the estimate and the model acted on are found
between them as well (see `refinement`).
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.vtr.calibration import VTRConstants, foreseeable_warnings, read_constants
from lqgap.adaptive.vtr.evidence import Evidence, ExactFilters
from lqgap.adaptive.vtr.fallback import choose_fallback
from lqgap.adaptive.vtr.options import VTROptions
from lqgap.adaptive.vtr.refinement import Refinement
from lqgap.adaptive.vtr.state import (
    LEFT_BALL,
    MISFIT,
    RUNNING,
    VTRChoice,
    VTRInfo,
    VTRMemory,
    VTRModel,
    belief_from_window,
    clip_model,
    clip_models,
)
from lqgap.adaptive.vtr.statistics import Statistics
from lqgap.arguments import IntLike, read_count
from lqgap.batches import take
from lqgap.linalg import quadratic
from lqgap.policies import AbstractPolicy
from lqgap.simulators import AbstractFamily, Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum, ValueTarget, solve, steady_predict, value_target
from lqgap.systems.natural import common_coordinates
from lqgap.systems.steady import steady_step


class LQGVTR(eqx.Module):
    """The algorithm: an `init`, and a `step` that also tells what it did.

    Args:
        members: a finite class, or LQGs.
        horizon: the last step.
        constants: "calibrated" (from the class alone), "theory" (which is far too large to run), or
            `VTRConstants`.
        family: of which the members are a grid or a cover, if the truth may lie between them.
        refine: whether, with a family, models between the members are chosen; if not, the sets are widened.
        fallback: the policy that takes over when the algorithm gives up; by default no input at all if all
            members are stable, else a controller that stabilises all of them.
    """

    members: Finite
    systems: LQG  # the members in coordinates common to the class, in which the belief has a norm
    optima: Optimum
    N: Float[Array, "member output window"]
    clip_norms: Float[Array, " member"]
    filters: ExactFilters
    constants: VTRConstants
    options: VTROptions
    fallback: AbstractPolicy
    refinement: Refinement | None
    horizon: int = eqx.field(static=True)

    def __init__(
        self,
        members: Members,
        *,
        horizon: IntLike,
        constants: Any = "calibrated",
        options: VTROptions | None = None,
        family: AbstractFamily | None = None,
        refine: bool = True,
        fallback: AbstractPolicy | None = None,
    ):
        self.members = Finite.of(members)
        coordinates = common_coordinates(self.members.systems)
        moved = self.members.in_coordinates(coordinates)
        self.systems = moved.systems
        self.horizon = read_count("horizon", horizon, least=1, most=100_000_000)
        self.options = VTROptions() if options is None else options
        self.optima = moved.optima()
        constants = read_constants(
            constants, moved, horizon=self.horizon, weighting=self.options.weighting, family=family
        )
        self.constants = jax.tree.map(jnp.asarray, constants)  # plain numbers would be compiled in
        self.N, self.clip_norms = clip_models(self.optima, self.systems, self.constants.length)
        self.filters = ExactFilters(self.systems, self.optima)
        self.fallback = choose_fallback(fallback, self.members)
        self.refinement = (
            None
            if family is None or not refine
            else Refinement(family, self.members, self.N, self.constants.length, coordinates)
        )

    def warnings(self) -> tuple[str, ...]:
        """What can be said of the constants before anything is observed."""
        return foreseeable_warnings(self.constants, horizon=self.horizon)

    def policy(self) -> "AdaptivePolicy":
        """The algorithm as a policy, for a `Controller` or an evaluation."""
        return AdaptivePolicy(self)

    def init(self, key: PRNGKeyArray, *, buffer_size: int | None = None) -> VTRMemory:
        """Before the first observation: all members are possible, the one with the smallest J is acted on."""
        buffer_size = self.options.buffer_size if buffer_size is None else buffer_size
        count, (p, n), m = len(self.members), self.systems.C.shape[1:], self.systems.B.shape[2]
        length, everyone = self.constants.length, jnp.ones(len(self.members), dtype=bool)
        key, key_fallback = jax.random.split(key)
        best = jnp.argmin(self.optima.J)
        xhat = jnp.zeros((count, n))
        return VTRMemory(
            time=jnp.asarray(0),
            key=key,
            xhat=xhat,
            past_inputs=jnp.zeros((length, m)),
            past_outputs=jnp.zeros((length, p)),
            since_loss=jnp.asarray(length),
            statistics=Statistics.empty(count, buffer_size=buffer_size),
            evidence=Evidence.empty(self.filters),
            allowed=everyone,
            choice=VTRChoice(everyone, best, best, self.members.parameters[best], jnp.asarray(0.0)),
            model=self._member(best, xhat),
            num_switches=jnp.asarray(0),
            status=jnp.asarray(RUNNING),
            has_sample=jnp.asarray(False),
            target=ValueTarget(jnp.zeros((p, p)), jnp.zeros(p), jnp.asarray(0.0)),
            predictions=jnp.zeros(count),
            weight=jnp.asarray(0.0),
            increment=jnp.asarray(0.0),
            fallback=self.fallback.init(key_fallback),
        )

    def may_switch(self, memory: VTRMemory) -> Bool[Array, ""]:
        """Whether the next step may select or switch models; if not, it may leave the sums alone."""
        ends_warmup = (memory.time == self.constants.num_warmup) & (self.constants.num_warmup > 0)
        return (memory.has_sample & memory.statistics.must_flush(memory.increment)) | ends_warmup

    def step(
        self,
        memory: VTRMemory,
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],
        *,
        skip_flush: bool = False,
    ) -> tuple[VTRMemory, Float[Array, " input"], VTRInfo]:
        """Observe, maybe select or switch, act, predict.

        Args:
            skip_flush: leave out what `may_switch` says is not needed; the N^2 sums stay untouched.
        """
        constants = self.constants
        is_lost = jnp.any(jnp.isnan(y))
        is_there, is_due = memory.has_sample & ~is_lost, jnp.asarray(False)
        is_full = is_there & memory.statistics.must_flush(memory.increment)
        sample = {"increment": memory.increment, "weight": memory.weight, "is_there": is_there}
        statistics = memory.statistics.buffer(memory.predictions, memory.target(y), **sample)
        if not skip_flush:
            statistics, is_due = jax.lax.cond(
                is_full, lambda s: s.flush(psi=constants.psi), lambda s: (s, jnp.asarray(False)), statistics
            )
        memory = replace(
            memory,
            xhat=_filter(self.systems, self.optima, memory.xhat, y, u_last),
            model=replace(memory.model, xhat=memory.model.advance(y, u_last)),
            past_inputs=_push(memory.past_inputs, u_last),
            past_outputs=_push(memory.past_outputs, jnp.where(is_lost, 0.0, y)),
            since_loss=jnp.where(is_lost, 0, memory.since_loss + 1),
            statistics=statistics,
            evidence=memory.evidence.observe(self.filters, y, u_last, slack=constants.slack),
        )
        is_switch = is_due & (memory.num_switches < constants.max_switches) & (memory.status == RUNNING)
        if not skip_flush:
            if 0 < constants.num_warmup <= self.horizon:
                ends_warmup = memory.time == constants.num_warmup
                memory = jax.lax.cond(ends_warmup, lambda m: self._select(m), lambda m: m, memory)  # noqa: PLW0108
            memory = jax.lax.cond(is_switch, lambda m: self._switch(m), lambda m: m, memory)  # noqa: PLW0108

        misfit = memory.evidence.misfit()
        memory = replace(memory, status=self._watch(memory, misfit))
        fallback, u_safe = self.fallback.step(memory.fallback, y, u_last)
        u = self._act(memory, u_safe)
        memory, error = self._predict(replace(memory, fallback=fallback), u)
        info = VTRInfo(
            is_switch=is_switch,
            status=memory.status,
            choice=memory.choice,
            theta=memory.model.theta,
            J=memory.model.optimum.J,
            clip_error=error,
            clip_bound=memory.model.clip_norm * constants.state_bound,
            misfit=misfit,
            is_lost=is_lost,
        )
        return replace(memory, time=memory.time + 1), u, info

    def covers(self, memory: VTRMemory, shares: Float[Array, " member"]) -> Bool[Array, ""]:
        """Whether a model is in the set of the last switch, given how much of each member it is."""
        if self.refinement is None:
            return memory.choice.members @ shares > 0.5
        sums, centre = memory.statistics.kept, self.refinement.shares(memory.choice.theta_estimate)
        return self.refinement.distance(sums, shares, centre) <= self.constants.beta

    def _select(self, memory: VTRMemory) -> VTRMemory:
        """At the end of the warm-up: keep the members that the likelihood leaves."""
        left = memory.evidence.likely_members(delta=self.constants.delta)
        choice = self._choose(memory.statistics, memory.evidence, left, memory.choice.score)
        model = self._member(choice.optimistic, memory.xhat)
        return replace(memory, allowed=left, choice=choice, model=model)

    def _switch(self, memory: VTRMemory) -> VTRMemory:
        reached = memory.statistics.score(psi=self.constants.psi)
        statistics = memory.statistics.merge()
        choice = self._choose(statistics, memory.evidence, memory.allowed, reached)
        if self.refinement is None:
            model = self._member(choice.optimistic, memory.xhat)
        else:
            choice, model = self._between(self.refinement, statistics, choice, memory)
        count = memory.num_switches + 1
        return replace(memory, statistics=statistics, choice=choice, model=model, num_switches=count)

    def _choose(
        self, statistics: Statistics, evidence: Evidence, allowed: Array, reached: Array
    ) -> VTRChoice:
        """The set, and the most optimistic member of it."""
        constants = self.constants
        if self.options.confidence == "targets":
            resolution = 0.0 if self.refinement is not None else constants.resolution
            best = statistics.estimate(allowed)
            near = statistics.confidence_set(allowed, beta=constants.beta, resolution=resolution)
        else:
            best = jnp.argmax(jnp.where(allowed, evidence.log_likelihood, -jnp.inf))
            # What model selection left may all be unlikely by now; the likeliest of it stays.
            is_best = jnp.arange(len(allowed)) == best
            near = allowed & (evidence.likely_members(delta=constants.delta) | is_best)
        optimistic = jnp.argmin(jnp.where(near, self.optima.J, jnp.inf))
        return VTRChoice(near, best, optimistic, self.members.parameters[best], reached)

    def _member(self, index: Int[Array, ""], xhat: Array) -> VTRModel:
        plant, optimum = take((self.systems, self.optima), index)
        tables = self.N, self.clip_norms, self.filters.law.precision[-1], self.members.parameters, xhat
        return VTRModel(plant, optimum, *(table[index] for table in tables))

    def _between(
        self, refinement: Refinement, statistics: Statistics, choice: VTRChoice, memory: VTRMemory
    ) -> tuple[VTRChoice, VTRModel]:
        """The same with models between the members, whose belief comes from the window."""
        found = refinement.choose(statistics.kept, choice, beta=self.constants.beta)
        plant = refinement.build(found.optimistic)
        optimum = solve(plant)
        xhat = belief_from_window(optimum, plant, memory.past_outputs, memory.past_inputs)
        choice = replace(choice, theta_estimate=found.estimate)
        clipped = clip_model(optimum, plant, self.constants.length)
        precision = jnp.linalg.inv(optimum.S)
        return choice, VTRModel(plant, optimum, *clipped, precision, found.optimistic, xhat)

    def _watch(self, memory: VTRMemory, misfit: Array) -> Int[Array, ""]:
        """Give up where the belief leaves its ball, or the observations fit no member."""
        is_active = memory.time >= self.constants.num_warmup
        has_left = is_active & ~(jnp.linalg.norm(memory.model.xhat) <= self.constants.state_bound)
        is_refuted = self.options.stops_on_misfit & (misfit >= -jnp.log(self.constants.delta))
        reason = jnp.where(is_refuted, MISFIT, jnp.where(has_left, LEFT_BALL, RUNNING))
        return jnp.where(memory.status == RUNNING, reason, memory.status)

    def _act(self, memory: VTRMemory, u_safe: Array) -> Float[Array, " input"]:
        u = -memory.model.optimum.K @ memory.model.xhat
        if self.constants.num_warmup > 0:
            draw = jax.random.normal(jax.random.fold_in(memory.key, memory.time), u.shape)
            u = jnp.where(memory.time >= self.constants.num_warmup, u, self.constants.sigma_u * draw)
        u = jnp.where(memory.status == RUNNING, u, u_safe)
        return jnp.where(memory.time >= self.horizon, 0.0, u)

    def _predict(self, memory: VTRMemory, u: Array) -> tuple[VTRMemory, Array]:
        """The sample of this step, and the error that clipping makes in the model's own prediction."""
        plant, optimum = memory.model.plant, memory.model.optimum
        target = value_target(optimum, plant, memory.model.xhat, u)
        eta = jnp.concatenate([memory.past_inputs.ravel(), memory.past_outputs.ravel(), u])
        expected = plant.C @ steady_predict(plant, memory.model.xhat, u)
        if self.options.history == "clipped":
            means = self.N @ eta
            is_whole = memory.since_loss >= self.constants.length
        else:
            means = jax.vmap(lambda system, xhat: system.C @ steady_predict(system, xhat, u))(
                self.systems, memory.xhat
            )
            is_whole = jnp.asarray(True)
        predictions = jax.vmap(target.mean)(means, self.optima.S)
        weight = jnp.ones_like(target.constant)
        if self.options.weighting == "variance":
            weight = 1 / target.variance(expected, optimum.S)
        is_active = (memory.time >= self.constants.num_warmup) & (memory.time < self.horizon)
        has_sample = is_active & is_whole & (memory.status == RUNNING)
        difference = memory.model.N @ eta - expected
        error = jnp.sqrt(quadratic(difference, memory.model.precision))
        memory = replace(
            memory,
            target=target,
            predictions=predictions,
            weight=weight,
            increment=memory.statistics.score_increment(predictions, psi=self.constants.psi, weight=weight),
            has_sample=has_sample,
        )
        return memory, jnp.where(is_whole, error, jnp.nan)


class AdaptivePolicy(AbstractPolicy):
    """The algorithm as a policy: the same inputs, without the account of them."""

    algorithm: LQGVTR

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.algorithm.systems.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.algorithm.systems.num_outputs

    @property
    def horizon(self) -> int:
        """The last step it is made for."""
        return self.algorithm.horizon

    def init(self, key: PRNGKeyArray) -> VTRMemory:
        """Before the first observation."""
        return self.algorithm.init(key)

    def step(
        self, memory: VTRMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[VTRMemory, Float[Array, " input"]]:
        """Observe, maybe switch, act."""
        return self.algorithm.step(memory, y, u_last)[:2]

    def trainable(self) -> Any:
        """Nothing: it learns by itself."""
        return jax.tree.map(lambda _: False, self)


def _filter(systems: LQG, optima: Optimum, xhat: Array, y: Array, u_last: Array) -> Array:
    """xhat_{t|t} of all members, by their steady filters."""
    return jax.vmap(steady_step, in_axes=(0, 0, 0, None, None))(optima, systems, xhat, u_last, y)


def _push(rows: Array, newest: Array) -> Array:
    return jnp.concatenate([newest[None], rows[:-1]])
