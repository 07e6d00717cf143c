"""What learners over a finite class share: the filters of all members, their likelihoods, whom to act on.

    l_i(t) = sum_{s<=t} log N(y_s; C_i xhat^i_{s|s-1}, S^i_s) ,    w_i = exp(l_i) / sum_j exp(l_j)

of exact filters, through lost samples too (`vtr.evidence`), under a uniform prior. A learner adds the rule by
which it chooses the member i whose input u = -K_i xhat^i_{t|t}, or that towards a set-point, is played;
O(N (n^2 + np + nm)) a step.

The members that the likelihood does not refute are told at every step; they hold a true member with
probability 1 - delta. Where the observations fit no member, the status says so, and the method goes on as it
was published: none of these has another controller to hand over to.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.adaptive.vtr.alarm import Alarm
from lqgap.adaptive.vtr.evidence import Evidence, MemberFilters
from lqgap.arguments import FloatLike, IntLike, read_count, read_probability
from lqgap.policies.bank import planned_gains
from lqgap.policies.policy import entry_at, move_ahead
from lqgap.policies.target import AbstractTarget, Origin
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG
from lqgap.systems.innovation import InnovationLaw
from lqgap.systems.setpoints import Rest, find_rest

DELTA = 0.05  # with which a true member may ever be refuted
NEVER = 1e300  # a lead that no likelihood has
OUTSIDE = (
    "misfit",
    "the observations fit no member of the class: the plant lies outside of it, or has changed; the method "
    "goes on with the class it has: widen the family, or take LQG-VTR, which hands over to a safe controller",
)


class Candidates(eqx.Module):
    """The members with their filters and gains: of the long run, or of every step of a task that ends."""

    members: Finite
    K: Float[Array, "time member input state"]
    filters: MemberFilters
    last_step: int | None = eqx.field(static=True)

    def __init__(self, members: Members, *, horizon: IntLike | None = None):
        self.members = Finite.of(members)
        systems, optima = self.members.systems, self.members.optima()
        self.filters = MemberFilters(systems, optima)
        self.last_step = None if horizon is None else read_count("horizon", horizon, least=0, most=1_000_000)
        self.K = optima.K[None] if self.last_step is None else planned_gains(systems, self.last_step)[0]

    def inputs(self, memory: "ClassMemory") -> Float[Array, "member input"]:
        """What every member would play now, after the observation of step `evidence.time - 1`."""
        K, steer = entry_at(self.K, memory.evidence.time - 1), jax.vmap(lambda t, K, x: t.steer(K, x))
        return steer(memory.target, K, memory.evidence.xhat)


class ClassMemory(eqx.Module):
    """What one step hands to the next."""

    evidence: Evidence
    target: AbstractTarget  # of every member
    alarm: Alarm
    acts_on: Int[Array, ""]
    num_changes: Int[Array, ""]
    key: PRNGKeyArray
    rule: Any  # what the rule itself remembers


class AbstractClassLearner(AbstractLearner):
    """A rule on the likelihoods of the members of a class."""

    candidates: eqx.AbstractVar[Candidates]
    reasons: ClassVar[tuple[tuple[str, str], ...]] = (OUTSIDE,)
    parts: ClassVar[tuple[type, ...]] = (Candidates, Finite, InnovationLaw, LQG, MemberFilters)

    @abc.abstractmethod
    def first(self) -> Any:
        """What the rule remembers before the first observation."""

    @abc.abstractmethod
    def choose(self, memory: ClassMemory, key: PRNGKeyArray) -> tuple[Int[Array, ""], Any]:
        """The member to act on after an observation, with a key for chance; and what the rule remembers."""

    def act(self, memory: ClassMemory, key: PRNGKeyArray) -> Float[Array, " input"]:  # noqa: ARG002
        """The input of the member acted on."""
        return self.candidates.inputs(memory)[memory.acts_on]

    @property
    def members(self) -> Finite:
        """The class."""
        return self.candidates.members

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.candidates.K.shape[2]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.candidates.filters.C.shape[1]

    @property
    def horizon(self) -> int | None:
        """The last step it is made for, if the task ends."""
        return self.candidates.last_step

    def rest(self, follow: Sequence[int]) -> Rest:
        """That of every member."""
        filters = self.candidates.filters
        return find_rest(filters.A, filters.B, filters.C, self.candidates.K[0], follow=follow)

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "AbstractClassLearner":
        """The learner planned for another horizon, if it has a plan."""
        if self.horizon is None:
            return self
        if systems is None:
            K = move_ahead(self.candidates.K, self.horizon - horizon)
            return eqx.tree_at(lambda learner: learner.candidates.K, self, K)
        planned = Candidates(self.members, horizon=horizon)
        return eqx.tree_at(lambda learner: learner.candidates, self, planned)

    def init(self, key: PRNGKeyArray) -> ClassMemory:
        """Before the first observation."""
        return ClassMemory(
            evidence=Evidence.empty(self.candidates.filters),
            target=Origin(),
            alarm=Alarm.quiet(),
            acts_on=jnp.asarray(0),
            num_changes=jnp.asarray(0),
            key=jax.random.split(key)[0],  # that of the run makes the noise of the plant
            rule=self.first(),
        )

    def step(
        self, memory: ClassMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[ClassMemory, Float[Array, " input"]]:
        """Filter by every member, choose, act."""
        evidence, _ = memory.evidence.observe(self.candidates.filters, y, u_last, has_gate=True)
        alarm, _ = memory.alarm.hear(evidence.misfit(), memory.evidence.time)
        key_choice, key_input = jax.random.split(jax.random.fold_in(memory.key, memory.evidence.time))
        memory = replace(memory, evidence=evidence, target=memory.target.move(), alarm=alarm)
        chosen, rule = self.choose(memory, key_choice)
        is_change = (chosen != memory.acts_on) & (evidence.time > 1)
        num_changes = memory.num_changes + is_change
        memory = replace(memory, acts_on=chosen, num_changes=num_changes, rule=rule)
        return memory, self.act(memory, key_input)

    def snapshot(self, memory: ClassMemory) -> Snapshot:
        """The member acted on, those not refuted, the weight of the likeliest, the misfit."""
        evidence, everyone = memory.evidence, jnp.ones(len(self.members), dtype=bool)
        return Snapshot(
            acts_on=self.members.parameters[memory.acts_on],
            plausible=evidence.likely_members(everyone, delta=jnp.asarray(DELTA)),
            num_changes=memory.num_changes,
            status=memory.alarm.is_on.astype(int),
            is_fault=evidence.gate.is_lost,
            is_warming=jnp.asarray(False),
            figures={"largest weight": jnp.max(weights(evidence)), "misfit": evidence.misfit()},
        )


def refutation(delta: FloatLike | None, num_members: int) -> Float[Array, ""]:
    """log(N / delta): a lead in likelihood over the truth that is ever reached with probability delta."""
    lead = NEVER if delta is None else math.log(num_members / read_probability("delta", delta))
    return jnp.asarray(lead)


def weights(evidence: Evidence) -> Float[Array, " member"]:
    """The posterior weights of all members."""
    return jax.nn.softmax(evidence.log_likelihood)
