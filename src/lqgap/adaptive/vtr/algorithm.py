"""LQG-VTR: act by the controller of a member that the samples leave.

At each step t

    a  y_t moves the beliefs and the likelihoods of all members, and completes the sample E_{t-1} of
       value-target regression, if that makes the sets;
    b  at the end of the warm-up, model selection leaves the members U_1;
    c  the set of members of U_1 that are still possible is found anew, at every step by the likelihood, or
       where the importance score of the samples reaches one; and a plan chooses a member by it;
    d  u_t = -K xhat_{t|t} of that member, from the whole history; random during the warm-up. While the
       observations fit no member another controller is in charge (`alarm`);
    e  with value targets, all members predict the next one: f_i(E_t).

As in the paper (`VTROptions.as_in_the_paper`): a warm-up, Algorithm 2's set, sets by value targets, the
member with the smallest J, and a halt where its belief leaves a ball. The default is sharper: likelihood
sets, which hold the truth at all steps with probability 1 - delta under every policy, the controller with the
smallest excess in the mean over the posterior, and a probe where that teaches too little (`policies.stake`).
All filters and predictions are one batched product each, and a step costs the same however many came before
it. With a family, whose plants lie between the members, the class is a finer grid, and `between` estimates
the plant.
"""

from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.adaptive.vtr.alarm import CAPPED, LEFT_BALL, REASONS, Alarm
from lqgap.adaptive.vtr.between import Between, Estimate, Model
from lqgap.adaptive.vtr.calibration import VTRConstants, foreseeable_warnings, read_constants
from lqgap.adaptive.vtr.evidence import Evidence, MemberFilters
from lqgap.adaptive.vtr.fallback import require_fallback, stabilizer_or_none, zero_or_stabilizer
from lqgap.adaptive.vtr.options import VTROptions
from lqgap.adaptive.vtr.plans import Plans
from lqgap.adaptive.vtr.refinement import refine
from lqgap.adaptive.vtr.selection import ModelSelection
from lqgap.adaptive.vtr.targets import ValueTargets
from lqgap.arguments import IntLike, read_count
from lqgap.batches import rarely
from lqgap.identification.realization import Realization
from lqgap.identification.streaming import MarkovRegression, Stream
from lqgap.policies import AbstractPolicy
from lqgap.policies.stake import Probe
from lqgap.simulators import AbstractFamily, Finite
from lqgap.simulators.audit.uninformative import describe, find_uninformative
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum
from lqgap.systems.innovation import InnovationLaw
from lqgap.systems.natural import common_coordinates

PARTS = (
    Between,
    Finite,
    InnovationLaw,
    LQG,
    MemberFilters,
    MarkovRegression,
    Model,
    ModelSelection,
    Optimum,
    Plans,
    Probe,
    Realization,
    ValueTargets,
    VTRConstants,
    VTROptions,
)


class VTRMemory(eqx.Module):
    """What one step hands to the next."""

    time: Int[Array, ""]
    key: PRNGKeyArray
    evidence: Evidence
    alarm: Alarm
    allowed: Bool[Array, " member"]  # U_1
    possible: Bool[Array, " member"]
    estimate: Estimate | None  # between the members
    acts_on: Int[Array, ""]
    num_changes: Int[Array, ""]
    targets: Any  # TargetMemory, if there are value targets
    stream: Stream | None  # of the warm-up, for Algorithm 2
    fallback: Any
    xi: Float[Array, " 2"]  # the course of the probe
    probing: Float[Array, ""]  # what the probe of this step costs


class LQGVTR(AbstractLearner):
    """LQG-VTR over a finite class, or over a family by a finer grid of it.

    Args:
        members: a finite class, or LQGs.
        horizon: the last step of a task that ends, where no input is chosen; None for one that goes on.
        constants: "calibrated" (from the class alone), "theory" (which is far too large to run), or
            `VTRConstants`.
        options: how it learns and acts; `VTROptions.as_in_the_paper()` is Algorithms 1 and 2, for which the
            horizon should be given: delta = 1 / horizon.
        family: of which the members are a grid or a sample, if the truth may lie between them.
        fallback: the policy that takes over where the observations fit no member; by default the member's
            controller with the smallest worst excess over the class, or a robust linear one where none of
            them stabilises all members.
    """

    members: Finite
    K: Float[Array, "member input state"]
    J: Float[Array, " member"]
    filters: MemberFilters
    plans: Plans
    targets: Any  # ValueTargets, if the sets are made by them
    selection: ModelSelection | None
    probe: Probe | None
    between: Between | None
    constants: VTRConstants
    options: VTROptions
    safest: int | None = eqx.field(static=True)  # the member to act on during an alarm, if it is one
    fallback: AbstractPolicy | None
    last_step: int | None = eqx.field(static=True)

    reasons: ClassVar[tuple[tuple[str, str], ...]] = REASONS
    parts: ClassVar[tuple[type, ...]] = PARTS

    def __init__(
        self,
        members: Members,
        *,
        horizon: IntLike | None = None,
        constants: Any = "calibrated",
        options: VTROptions | None = None,
        family: AbstractFamily | Finite | None = None,
        fallback: AbstractPolicy | None = None,
    ):
        self.options = options = options or VTROptions()
        self.members = Finite.of(members) if family is None else refine(family, Finite.of(members))
        self.last_step = (
            None if horizon is None else read_count("horizon", horizon, least=1, most=100_000_000)
        )
        # The belief has a norm in coordinates common to the class.
        T = common_coordinates(self.members.systems)
        moved = self.members.in_coordinates(T)
        systems, optima = moved.systems, moved.optima()
        read = read_constants(constants, moved, horizon=self.last_step, options=options)
        self.constants = jax.tree.map(jnp.asarray, read)  # plain numbers would be compiled in
        self.K, self.J = optima.K, optima.J
        self.filters = MemberFilters(systems, optima, is_exact=options.filters == "exact")
        has_excess = options.plan != "optimistic" or (options.alarm == "misfit" and fallback is None)
        self.plans = Plans(systems, optima, options.plan, has_excess=has_excess)
        self.targets = (
            ValueTargets(systems, optima, self.constants, options)
            if options.confidence == "targets"
            else None
        )
        self.selection = None
        if options.selection != "likelihood":
            length = read.length
            self.selection = ModelSelection(systems, optima, kind=options.selection, length=length)
        self.probe = Probe(systems, optima, probe=options.probe) if options.probes else None
        self.between = None
        if isinstance(family, AbstractFamily) and Between.fits(family) and options.confidence == "likelihood":
            self.between = Between(family, self.members, T)
        self.safest = self.plans.safest() if options.alarm == "misfit" and fallback is None else None
        self.fallback = self._choose_fallback(fallback)

    def _choose_fallback(self, fallback: AbstractPolicy | None) -> AbstractPolicy | None:
        if fallback is not None:
            return require_fallback(fallback, self.members)
        if self.options.alarm.startswith("ball"):
            return zero_or_stabilizer(self.members)
        if self.options.alarm == "none" or self.safest is not None:
            return None
        return stabilizer_or_none(self.members)

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.K.shape[1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.filters.C.shape[1]

    @property
    def horizon(self) -> int | None:
        """The last step it is made for, if the task ends."""
        return self.last_step

    def remarks(self, last_step: int) -> tuple[str, ...]:
        """What can be said before anything is observed."""
        found = list(foreseeable_warnings(self.constants, horizon=last_step))
        alarm, options = self.options.alarm, self.options
        if (
            self.constants.num_warmup > 0
            and np.max(np.abs(np.linalg.eigvals(np.asarray(self.filters.A)))) >= 1
        ):
            found.append("some member is not stable: it diverges under the random inputs of the warm-up")
        if alarm == "misfit" and self.safest is None and self.fallback is None:
            found.append(
                "no controller was found that stabilises all members: an alarm begins learning anew, and "
                "nothing takes over (give a fallback)"
            )
        if self.options.confidence == "likelihood":
            found += describe(self.members, find_uninformative(self.members, np.arange(len(self.members))))
        if options.filters == "steady" and (options.confidence == "likelihood" or alarm == "misfit"):
            found.append("with steady filters likelihoods, and alarms, are right only if S0 = Sigma")
        return tuple(found)

    def snapshot(self, memory: VTRMemory) -> Snapshot:
        """The model acted on, the set, and figures: J, the certified rate of excess, the misfit."""
        figures = {"J": self.J[memory.acts_on], "misfit": memory.evidence.misfit()}
        if self.plans.excess.size:
            is_planned = (memory.time > self.constants.num_warmup) & ~memory.alarm.is_on
            rate = self.plans.rate(memory.acts_on, memory.possible)
            figures["excess rate"] = jnp.where(is_planned, rate, jnp.inf)
        if self.probe is not None:
            figures["probing"] = memory.probing
        if memory.targets is not None:
            figures |= {"clip error": memory.targets.clip_error, "score": memory.targets.score}
        theta = self.members.parameters[memory.acts_on]
        if self.between is not None and memory.estimate is not None:
            estimated = self.between.theta(memory.estimate, self.members.parameters)
            theta = jnp.where(memory.estimate.is_sharp & ~memory.alarm.is_on, estimated, theta)
        return Snapshot(
            acts_on=theta,
            plausible=memory.possible,
            num_changes=memory.num_changes,
            status=memory.alarm.status,
            is_fault=memory.evidence.gate.is_lost,
            is_warming=memory.time <= self.constants.num_warmup,
            figures=figures,
        )

    def init(self, key: PRNGKeyArray) -> VTRMemory:
        """Before the first observation: all members are possible."""
        everyone = jnp.ones(len(self.members), dtype=bool)
        key, key_fallback = jax.random.split(key)
        xi = jnp.zeros(2) if self.probe is None else self.probe.begin(jax.random.fold_in(key_fallback, 1))
        return VTRMemory(
            time=jnp.asarray(0),
            key=key,
            evidence=Evidence.empty(self.filters),
            alarm=Alarm.quiet(),
            allowed=everyone,
            possible=everyone,
            estimate=None if self.between is None else self.between.begin(),
            acts_on=self.plans.choose(everyone, jnp.zeros(len(self.members))),
            num_changes=jnp.asarray(0),
            targets=None if self.targets is None else self.targets.init(),
            stream=None if self.selection is None else self.selection.regression.init(),
            fallback=None if self.fallback is None else self.fallback.init(key_fallback),
            xi=xi,
            probing=jnp.asarray(0.0),
        )

    def step(
        self,
        memory: VTRMemory,
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],
    ) -> tuple[VTRMemory, Float[Array, " input"]]:
        """Observe, maybe select or switch, act, predict."""
        before, is_due = memory, jnp.asarray(self.targets is None)
        has_gate = self.options.alarm == "misfit"
        evidence, y = memory.evidence.observe(self.filters, y, u_last, has_gate=has_gate)
        if self.targets is not None:
            beliefs = before.evidence.xhat, before.acts_on, before.possible
            targets, is_due = self.targets.observe(before.targets, *beliefs, y, u_last)
            memory = replace(memory, targets=targets)
        memory = replace(memory, evidence=evidence)
        if self.between is not None and memory.estimate is not None:
            estimate = self.between.observe(memory.estimate, evidence, self.filters, y, u_last)
            memory = replace(memory, estimate=estimate)
        if self.selection is not None and memory.stream is not None:
            memory = replace(memory, stream=self.selection.regression.step(memory.stream, y, u_last))
        memory = self._hear(memory)
        memory = self._replan(memory, is_due)
        if self.options.alarm.startswith("ball"):
            memory = replace(memory, alarm=self._watch(memory))
        memory, u = self._act(memory, y, u_last)
        if self.targets is not None:
            is_wanted = self._is_warm(memory) & ~memory.alarm.is_on & ~self._is_over(memory)
            belief = memory.evidence.xhat, memory.acts_on, memory.possible
            targets = self.targets.sample(memory.targets, *belief, u, is_wanted=is_wanted)
            memory = replace(memory, targets=targets)
        return replace(memory, time=memory.time + 1), u

    def _hear(self, memory: VTRMemory) -> VTRMemory:
        """Sound the alarm where the observations fit no member, and begin anew with all of them."""
        if self.options.alarm != "misfit":
            return memory
        alarm, rings = memory.alarm.hear(memory.evidence.misfit(), memory.time)
        return replace(
            memory,
            alarm=alarm,
            evidence=memory.evidence.begin_anew(rings),
            allowed=memory.allowed | rings,
        )

    def _replan(self, memory: VTRMemory, is_due: Array) -> VTRMemory:
        """Model selection at the end of the warm-up; the set and the plan, where they are due."""
        if self.constants.num_warmup > 0:
            memory = self._select(memory)
        if self.targets is None:
            possible = memory.evidence.likely_members(memory.allowed, delta=self.constants.delta)
            return self._plan(memory, possible)
        is_capped = memory.num_changes >= self.constants.max_switches
        status = jnp.where(is_due & is_capped & ~memory.alarm.is_on, CAPPED, memory.alarm.status)
        memory = replace(memory, alarm=replace(memory.alarm, status=status))
        is_switch = is_due & ~is_capped & ~memory.alarm.is_on
        return jax.lax.cond(is_switch, lambda m: self._switch(m), lambda m: m, memory)  # noqa: PLW0108

    def _select(self, memory: VTRMemory) -> VTRMemory:
        """At the end of the warm-up: U_1 is what the likelihood or Algorithm 2 leaves."""
        is_now, constants = memory.time == self.constants.num_warmup, self.constants
        left = memory.evidence.likely_members(memory.allowed, delta=constants.delta)
        if (selection := self.selection) is not None:
            radius = jnp.sqrt(constants.C_w / constants.num_warmup)
            seen = selection, memory.stream, radius
            left = rarely(lambda _, chooser, *given: chooser.left(*given), is_now, left, *seen)
        planned = self._plan(replace(memory, allowed=left), left)
        return jax.tree.map(lambda new, old: jnp.where(is_now, new, old), planned, memory)

    def _switch(self, memory: VTRMemory) -> VTRMemory:
        """By value targets: merge the samples, find the set around the estimate, and plan."""
        targets = self.targets.merge(memory.targets)
        possible = self.targets.possible_members(targets, memory.allowed)
        planned = self._plan(memory, possible)
        return replace(planned, targets=targets, num_changes=memory.num_changes + 1)

    def _plan(self, memory: VTRMemory, possible: Bool[Array, " member"]) -> VTRMemory:
        chosen = self.plans.choose(possible, memory.evidence.log_likelihood)
        num_changes = memory.num_changes + (chosen != memory.acts_on)
        return replace(memory, possible=possible, acts_on=chosen, num_changes=num_changes)

    def _watch(self, memory: VTRMemory) -> Alarm:
        """Give up where the belief leaves its ball: for ever, or until a wait is over."""
        belief = memory.evidence.xhat[memory.acts_on]
        has_left = self._is_warm(memory) & ~(jnp.linalg.norm(belief) <= self.constants.state_bound)
        if self.options.alarm == "ball for a while":
            return memory.alarm.ring(has_left, memory.time, LEFT_BALL)
        return replace(memory.alarm, status=jnp.where(has_left, LEFT_BALL, memory.alarm.status))

    def _act(self, memory: VTRMemory, y: Array, u_last: Array) -> tuple[VTRMemory, Float[Array, " input"]]:
        index = memory.acts_on
        if self.safest is not None:
            index = jnp.where(memory.alarm.is_on, self.safest, index)
        u = -self.K[index] @ memory.evidence.xhat[index]
        if self.between is not None and memory.estimate is not None:
            u_between = jnp.where(
                memory.estimate.is_sharp, self.between.input(memory.estimate), self._mean(memory)
            )
            u = jnp.where(memory.alarm.is_on, u, u_between)
        if self.probe is not None:
            memory, added = self._probe(memory, self.probe)
            u = u + added
        if self.constants.num_warmup > 0:
            draw = jax.random.normal(jax.random.fold_in(memory.key, memory.time), u.shape, u.dtype)
            u = jnp.where(self._is_warm(memory) | memory.alarm.is_on, u, self.constants.sigma_u * draw)
        if self.fallback is not None:
            fallback, u_safe = self.fallback.step(memory.fallback, y, u_last)
            memory, u = replace(memory, fallback=fallback), jnp.where(memory.alarm.is_on, u_safe, u)
        return memory, jnp.where(self._is_over(memory), 0.0, u)

    def _mean(self, memory: VTRMemory) -> Float[Array, " input"]:
        """The posterior mean of inputs, of members that the chosen one stabilises and that stabilise it."""
        excess, chosen = self.plans.excess, memory.acts_on
        is_near = jnp.isfinite(excess[chosen]) & jnp.isfinite(excess[:, chosen])
        weights = jax.nn.softmax(memory.evidence.log_likelihood) * is_near
        return -jnp.einsum("k,kij,kj->i", weights / jnp.sum(weights), self.K, memory.evidence.xhat)

    def _probe(self, memory: VTRMemory, probe: Probe) -> tuple[VTRMemory, Float[Array, " input"]]:
        """What is added to the input where the controller acted on teaches too little."""
        weights = jax.nn.softmax(memory.evidence.log_likelihood)
        left = jnp.inf if self.last_step is None else self.last_step - memory.time
        cost, direction = probe.plan(memory.acts_on, weights, left)
        cost = jnp.where(memory.alarm.is_on | ~self._is_warm(memory), 0.0, cost)
        xi = probe.move(memory.xi, jax.random.fold_in(memory.key, -1 - memory.time))
        return replace(memory, xi=xi, probing=cost), probe.input(cost, direction, xi)

    def _is_warm(self, memory: VTRMemory) -> Bool[Array, ""]:
        return memory.time >= self.constants.num_warmup

    def _is_over(self, memory: VTRMemory) -> Bool[Array, ""]:
        return jnp.asarray(False) if self.last_step is None else memory.time >= self.last_step
