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

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.vtr.as_policy import AdaptivePolicy
from lqgap.adaptive.vtr.calibration import VTRConstants, foreseeable_warnings, read_constants
from lqgap.adaptive.vtr.evidence import (
    Evidence,
    ExactFilters,
    likelihood_members,
    misfit,
    no_evidence,
    observe,
)
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
from lqgap.adaptive.vtr.statistics import (
    Statistics,
    buffer,
    confidence_set,
    estimate,
    flush_if,
    merge,
    must_flush,
    no_samples,
    score,
    score_increment,
)
from lqgap.adaptive.vtr.warmup import WarmupRecord, select_from
from lqgap.arguments import IntLike, read_count
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.linalg import quadratic
from lqgap.policies import AbstractPolicy
from lqgap.simulators import AbstractFamily, Finite
from lqgap.simulators.finite import Members
from lqgap.systems import (
    LQG,
    Optimum,
    ValueTarget,
    solve,
    steady_predict,
    value_target,
)
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

    @property
    def selects_from_record(self) -> bool:
        """Whether `select` is to be called at the end of the warm-up."""
        is_reached = 0 < self.constants.num_warmup <= self.horizon
        return is_reached and self.options.selection != "likelihood"

    def policy(self) -> "AdaptivePolicy":
        """The algorithm as a policy, for a `Controller` or an evaluation."""
        if self.selects_from_record:
            raise InvalidArgumentError(
                f"a policy cannot select models by the {self.options.selection} set, which needs the "
                f"record as a whole: use the likelihood set, or lqgap.adaptive.run"
            )
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
            statistics=no_samples(count, buffer_size=buffer_size),
            evidence=no_evidence(self.filters),
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
            record=WarmupRecord.empty(
                self.constants.num_warmup if self.selects_from_record else 0, num_outputs=p, num_inputs=m
            ),
        )

    def may_switch(self, memory: VTRMemory) -> Bool[Array, ""]:
        """Whether the next step may select or switch models; if not, it may leave the sums alone."""
        ends_warmup = (memory.time == self.constants.num_warmup) & (self.constants.num_warmup > 0)
        return (memory.has_sample & must_flush(memory.statistics, memory.increment)) | ends_warmup

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
        constants, now = self.constants, memory.time
        is_lost = jnp.any(jnp.isnan(y))
        evidence = observe(self.filters, memory.evidence, y, u_last, slack=constants.slack)
        is_there, is_due = memory.has_sample & ~is_lost, jnp.asarray(False)
        is_full = is_there & must_flush(memory.statistics, memory.increment)
        sample = {"increment": memory.increment, "weight": memory.weight, "is_there": is_there}
        statistics = buffer(memory.statistics, memory.predictions, memory.target(y), **sample)
        if not skip_flush:
            statistics, is_due = flush_if(is_full, statistics, psi=constants.psi)
        memory = eqx.tree_at(
            lambda m: (m.xhat, m.model.xhat, m.past_inputs, m.past_outputs, m.since_loss, m.statistics),
            memory,
            (
                _filter(self.systems, self.optima, memory.xhat, y, u_last),
                memory.model.advance(y, u_last),
                _push(memory.past_inputs, u_last),
                _push(memory.past_outputs, jnp.where(is_lost, 0.0, y)),
                jnp.where(is_lost, 0, memory.since_loss + 1),
                statistics,
            ),
        )
        memory = eqx.tree_at(lambda m: m.evidence, memory, evidence)
        memory = self._select(memory, y, u_last, skip_flush=skip_flush)
        is_switch = is_due & (memory.num_switches < constants.max_switches) & (memory.status == RUNNING)
        if not skip_flush:
            memory = jax.lax.cond(is_switch, lambda m: self._switch(m), lambda m: m, memory)  # noqa: PLW0108

        strength = misfit(evidence)
        memory = self._watch(memory, strength)
        fallback, u_safe = self.fallback.step(memory.fallback, y, u_last)
        u = self._act(memory, u_safe)
        memory, error = self._predict(eqx.tree_at(lambda m: m.fallback, memory, fallback), u)
        info = VTRInfo(
            is_switch=is_switch,
            status=memory.status,
            choice=memory.choice,
            theta=memory.model.theta,
            J=memory.model.optimum.J,
            clip_error=error,
            clip_bound=memory.model.clip_norm * constants.state_bound,
            misfit=strength,
            is_lost=is_lost,
        )
        return eqx.tree_at(lambda m: m.time, memory, now + 1), u, info

    def covers(self, memory: VTRMemory, shares: Float[Array, " member"]) -> Bool[Array, ""]:
        """Whether a model is in the set of the last switch, given how much of each member it is."""
        if self.refinement is None:
            return memory.choice.members @ shares > 0.5
        sums, centre = memory.statistics.kept, self.refinement.shares(memory.choice.theta_estimate)
        return self.refinement.distance(sums, shares, centre) <= self.constants.beta

    def select(self, memory: VTRMemory, u_last: Float[Array, " input"]) -> VTRMemory:
        """Right before the first step after the warm-up: keep the members that its record leaves.

        The likelihood set needs no such call. Raises RefutedClassError if none is left.
        """
        record = memory.record.push(memory.time, jnp.zeros_like(memory.record.y[0]), u_last)
        return self._keep(memory, select_from(record, self.members, self.options, self.constants))

    def _select(self, memory: VTRMemory, y: Array, u_last: Array, *, skip_flush: bool) -> VTRMemory:
        """The same in the course of a step, for the likelihood set."""
        num_warmup = self.constants.num_warmup
        if num_warmup == 0 or num_warmup > self.horizon:
            return memory
        if self.selects_from_record:
            return eqx.tree_at(lambda m: m.record, memory, memory.record.push(memory.time, y, u_last))
        if skip_flush:
            return memory
        left = likelihood_members(memory.evidence, delta=self.constants.delta)
        is_now = memory.time == num_warmup
        return jax.lax.cond(is_now, lambda m: self._keep(m, left), lambda m: m, memory)

    def _keep(self, memory: VTRMemory, left: Bool[Array, " member"]) -> VTRMemory:
        choice = self._choose(memory.statistics, memory.evidence, left, memory.choice.score)
        model = self._member(choice.optimistic, memory.xhat)
        return eqx.tree_at(lambda m: (m.allowed, m.choice, m.model), memory, (left, choice, model))

    def _switch(self, memory: VTRMemory) -> VTRMemory:
        reached = score(memory.statistics, psi=self.constants.psi)
        statistics = merge(memory.statistics)
        choice = self._choose(statistics, memory.evidence, memory.allowed, reached)
        if self.refinement is None:
            model = self._member(choice.optimistic, memory.xhat)
        else:
            choice, model = self._between(self.refinement, statistics, choice, memory)
        return eqx.tree_at(
            lambda m: (m.statistics, m.choice, m.model, m.num_switches),
            memory,
            (statistics, choice, model, memory.num_switches + 1),
        )

    def _choose(
        self, statistics: Statistics, evidence: Evidence, allowed: Array, reached: Array
    ) -> VTRChoice:
        """The set, and the most optimistic member of it."""
        constants, kind = self.constants, self.options.confidence
        resolution = None if self.refinement is not None else constants.resolution
        near = confidence_set(statistics, allowed, beta=constants.beta, resolution=resolution)
        likely = allowed & likelihood_members(evidence, delta=constants.delta)
        best = estimate(statistics, allowed)
        if kind != "targets":
            best = jnp.argmax(jnp.where(allowed, evidence.log_likelihood, -jnp.inf))
            # What model selection left may all be unlikely by now; the likeliest of it stays.
            likely = likely | (allowed & (jnp.arange(len(allowed)) == best))
            near = likely & near if kind == "both" else likely
            near = jnp.where(jnp.any(near), near, likely)
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
        choice = eqx.tree_at(lambda c: c.theta_estimate, choice, found.estimate)
        clipped = clip_model(optimum, plant, self.constants.length)
        precision = jnp.linalg.inv(optimum.S)
        return choice, VTRModel(plant, optimum, *clipped, precision, found.optimistic, xhat)

    def _watch(self, memory: VTRMemory, strength: Array) -> VTRMemory:
        """Give up where the belief leaves its ball, or the observations fit no member."""
        is_active = memory.time >= self.constants.num_warmup
        has_left = is_active & ~(jnp.linalg.norm(memory.model.xhat) <= self.constants.state_bound)
        is_refuted = self.options.stops_on_misfit & (strength >= -jnp.log(self.constants.delta))
        reason = jnp.where(is_refuted, MISFIT, jnp.where(has_left, LEFT_BALL, RUNNING))
        return eqx.tree_at(
            lambda m: m.status, memory, jnp.where(memory.status == RUNNING, reason, memory.status)
        )

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
        if self.options.score_over == "selected":
            # Those left out predict what one that is left predicts, and so add nothing to the score.
            predictions = jnp.where(memory.allowed, predictions, predictions[jnp.argmax(memory.allowed)])
        weight = jnp.ones_like(target.constant)
        if self.options.weighting == "variance":
            weight = 1 / target.variance(expected, optimum.S)
        is_active = (memory.time >= self.constants.num_warmup) & (memory.time < self.horizon)
        has_sample = is_active & is_whole & (memory.status == RUNNING)
        difference = memory.model.N @ eta - expected
        error = jnp.sqrt(quadratic(difference, memory.model.precision))
        raises = score_increment(memory.statistics, predictions, psi=self.constants.psi, weight=weight)
        memory = eqx.tree_at(
            lambda m: (m.target, m.predictions, m.weight, m.increment, m.has_sample),
            memory,
            (target, predictions, weight, raises, has_sample),
        )
        return memory, jnp.where(is_whole, error, jnp.nan)


def _filter(systems: LQG, optima: Optimum, xhat: Array, y: Array, u_last: Array) -> Array:
    """xhat_{t|t} of all members, by their steady filters."""
    return jax.vmap(steady_step, in_axes=(0, 0, 0, None, None))(optima, systems, xhat, u_last, y)


def _push(rows: Array, newest: Array) -> Array:
    return jnp.concatenate([newest[None], rows[:-1]])
