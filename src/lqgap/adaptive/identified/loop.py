"""The loop of learners without a class: be quiet, excite, identify, control, identify again.

    t < 20              u = 0: how large outputs are without input
    until certified     u random (`knowledge`); a model is tried at t = 2d, then at 1.25 t, and is used if it
                        is certified (`fitting`), or at t = 8d at the latest
    then                u by the model; a new one at 2t, and at once where the guard trips

All samples count, those of the closed loop too. The guard: where y'Qy exceeds four times its maximum of the
warm-up, or an input is not finite, the stabiliser takes over (zero input, if there is none) until y'Qy is
below this maximum. A new model changes the coordinates of the belief, which is computed again from the last
60 samples. Through lost samples beliefs are predicted, and the sums leave them out. A sample that is absurd
to the model acted on, or in the warm-up larger than a stable plant's, counts as lost (`systems.faults`).

Models are made in a loop of no or one turn: side by side with other runs it turns only if one of them is due,
so that a step costs as much as the samples it adds, at O(log t) steps apart.
"""

import abc
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.identified.fitting import Units, draw_normals
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.identification.streaming import LARGEST, Stream
from lqgap.linalg import quadratic
from lqgap.systems.faults import Gate

NUM_QUIET = 20
FIRST, LAST = 2, 8  # times d: when a model is tried first, and when it is used without a certificate
RETRY, GROWTH = 1.25, 2.0
GUARD = 4.0  # times the largest y'Qy of the warm-up
GROWTH_LIMIT = 1e4  # times the mean y'Qy without input
GUARDED, UNMODELLED, GROWING = 1, 2, 3
UNSTABLE = "the plant is not stable: give UnknownPlant a linear controller that makes it so, stabilizer="
REASONS = (
    (
        "guard",
        "outputs are far larger than in the warm-up, or an input is not finite: the stabiliser, or no input, "
        f"is in control until they are not; if this does not end, {UNSTABLE}",
    ),
    (
        "no model",
        "no usable model was found, and random inputs go on: the window is too short or too long, too many "
        "samples are lost, or inputs have no effect",
    ),
    (
        "growth",
        f"outputs grow by orders of magnitude while nothing is known: {UNSTABLE}",
    ),
)


class Found(eqx.Module):
    """What an identification hands over."""

    plan: Any
    is_sound: Bool[Array, ""]
    is_safe: Bool[Array, ""]


class Quiet(eqx.Module):
    """Sums over the first samples, without input."""

    cost: Float[Array, ""]
    squares: Float[Array, " output"]
    count: Int[Array, ""]

    @property
    def mean(self) -> Float[Array, ""]:
        """Of y'Qy."""
        return self.cost / jnp.maximum(self.count, 1)


class IdentifiedMemory(eqx.Module):
    """What one step hands to the next."""

    time: Int[Array, ""]
    key: PRNGKeyArray
    stream: Stream
    quiet: Quiet
    ceiling: Float[Array, ""]  # the largest y'Qy of the warm-up
    plan: Any
    state: Any  # of the plan, in its coordinates
    law: Any  # what is learned besides it
    is_committed: Bool[Array, ""]
    is_guarded: Bool[Array, ""]
    next_fit: Int[Array, ""]
    num_plans: Int[Array, ""]
    num_trips: Int[Array, ""]
    stabilizer: Any
    gate: Gate


def in_double(tree: Any) -> Any:
    """The same numbers in double precision."""
    return jax.tree.map(lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x, tree)


class AbstractIdentified(AbstractLearner):
    """A learner that identifies the plant; what it does with a model is its own."""

    plant: eqx.AbstractVar[UnknownPlant]
    first_fit: eqx.AbstractVar[Int[Array, ""]]  # the step at which a model is tried first
    has_refits: ClassVar[bool] = True  # whether models are made anew when there are twice as many samples
    reasons: ClassVar[tuple[tuple[str, str], ...]] = REASONS
    remedy: ClassVar[str] = f"; perhaps {UNSTABLE}"

    @property
    def members(self) -> None:
        """There is no class."""
        return

    @abc.abstractmethod
    def blank(self) -> tuple[Any, Any, Any]:
        """Plan, its state at rest, and law, before anything is known."""

    @abc.abstractmethod
    def identify(self, stream: Stream, units: Units, normals: Float[Array, "draw parameter"]) -> Found:
        """A plan, from all samples; normal numbers are for a certificate."""

    @abc.abstractmethod
    def advance(
        self, plan: Any, state: Any, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> Any:
        """The plan's state after another observation."""

    @abc.abstractmethod
    def surprise(
        self, plan: Any, state: Any, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> Float[Array, ""]:
        """e' S^-1 e of another observation, by the plan."""

    @abc.abstractmethod
    def respond(self, memory: IdentifiedMemory, normal: Float[Array, " input"]) -> tuple[Any, Array]:
        """The law and the input, for a state that knows the last observation; `normal` is for probing."""

    @abc.abstractmethod
    def figures(self, memory: IdentifiedMemory) -> dict[str, Float[Array, ""]]:
        """What is traced of it."""

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.plant.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.plant.num_outputs

    def remarks(self, last_step: int) -> tuple[str, ...]:
        """Whether the warm-up may outlast the run."""
        latest = max(LAST * self.plant.num_features, int(self.first_fit))
        if latest <= last_step:
            return ()
        return (
            f"the warm-up may take up to {latest} steps, and the run has {last_step + 1}: take a smaller "
            f"window",
        )

    def snapshot(self, memory: IdentifiedMemory) -> Snapshot:
        """Models made, the guard, and figures."""
        latest = jnp.maximum(LAST * self.plant.num_features, self.first_fit)
        is_unmodelled = ~memory.is_committed & (memory.time > latest + 1)
        is_growing = ~memory.is_committed & (memory.ceiling > _largest(memory.quiet))
        status = jnp.where(is_growing, GROWING, jnp.where(is_unmodelled, UNMODELLED, 0))
        status = jnp.where(memory.is_guarded, GUARDED, status)
        return Snapshot(
            acts_on=jnp.zeros(0),
            plausible=jnp.zeros(0, dtype=bool),
            num_changes=memory.num_plans,
            status=status,
            is_fault=memory.gate.is_lost,
            is_warming=~memory.is_committed,
            figures={"trips": memory.num_trips.astype(jnp.float64), **self.figures(memory)},
        )

    def init(self, key: PRNGKeyArray) -> IdentifiedMemory:
        """Before the first observation; in double precision, as regressions on sums need it."""
        return in_double(self)._begin(key)

    def step(
        self, memory: IdentifiedMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[IdentifiedMemory, Float[Array, " input"]]:
        """Observe, maybe identify, act."""
        memory, u = in_double(self)._step(memory, *in_double((y, u_last)))
        return memory, u.astype(y.dtype)

    def _begin(self, key: PRNGKeyArray) -> IdentifiedMemory:
        key, key_stabilizer = jax.random.split(key)
        plan, state, law = self.blank()
        zero, no = jnp.asarray(0), jnp.asarray(False)
        return IdentifiedMemory(
            time=zero,
            key=key,
            stream=self.plant.regression.init(),
            quiet=Quiet(jnp.asarray(0.0), jnp.zeros(self.num_outputs), zero),
            ceiling=jnp.asarray(0.0),
            plan=plan,
            state=state,
            law=law,
            is_committed=no,
            is_guarded=no,
            next_fit=self.first_fit,
            num_plans=zero,
            num_trips=zero,
            stabilizer=self.plant.stabilizer.init(key_stabilizer),
            gate=Gate.unused(),
        )

    def _step(self, memory: IdentifiedMemory, y: Array, u_last: Array) -> tuple[IdentifiedMemory, Array]:
        normal = jax.random.normal(jax.random.fold_in(memory.key, memory.time), u_last.shape, u_last.dtype)
        normal, memory = jax.lax.optimization_barrier((normal, memory))
        y = jnp.where(jnp.abs(y) < LARGEST, y, jnp.nan)
        memory = replace(memory, gate=self._judge(memory, y, u_last))
        y = jnp.where(memory.gate.is_lost, jnp.nan, y)
        memory, trips = self._observe(memory, y, u_last)
        is_due = memory.time >= memory.next_fit
        if not self.has_refits:
            is_due = is_due & ~memory.is_committed
        memory = self._identify_if(memory, is_due | trips)
        memory = replace(memory, state=self.advance(memory.plan, memory.state, y, u_last))
        return self._act(memory, y, u_last, normal)

    def _judge(self, memory: IdentifiedMemory, y: Array, u_last: Array) -> Gate:
        """Whether a sample is a fault of the sensor: by the model or, as long as there is none, by size."""
        by_model = self.surprise(memory.plan, memory.state, y, u_last)
        by_size = jnp.where(quadratic(y, self.plant.Q) > _largest(memory.quiet), jnp.inf, 0.0)
        return memory.gate.judge(jnp.where(memory.is_committed, by_model, by_size), self.num_outputs)

    def _observe(self, memory: IdentifiedMemory, y: Array, u_last: Array) -> tuple[IdentifiedMemory, Array]:
        """The samples, how large outputs are, and whether the guard trips at this step."""
        cost, is_whole = quadratic(y, self.plant.Q), ~jnp.any(jnp.isnan(y))
        known, quiet = jnp.where(is_whole, y, 0), memory.quiet
        counts = is_whole & (quiet.count < NUM_QUIET)
        quiet = Quiet(
            quiet.cost + jnp.where(counts, quadratic(known, self.plant.Q), 0),
            quiet.squares + jnp.where(counts, known**2, 0),
            quiet.count + counts,
        )
        is_warming = is_whole & ~memory.is_committed
        trips = memory.is_committed & ~memory.is_guarded & (cost > GUARD * memory.ceiling)
        moved = replace(
            memory,
            stream=self.plant.regression.step(memory.stream, y, u_last),
            quiet=quiet,
            ceiling=jnp.where(is_warming, jnp.maximum(memory.ceiling, cost), memory.ceiling),
            is_guarded=(memory.is_guarded | trips) & ~(cost < memory.ceiling),
            num_trips=memory.num_trips + trips,
        )
        return moved, trips

    def _identify_if(self, memory: IdentifiedMemory, is_due: Array) -> IdentifiedMemory:
        """A new plan, with the state that the last samples give it, if it is due and good enough."""
        cap = LAST * self.plant.num_features
        late = memory.time >= cap
        start = (is_due, memory.plan, memory.state, memory.is_committed, memory.num_plans)

        def turn(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            # What does not depend on the turn would be computed before the loop, and at every step; and
            # loops that do not wait for each other may deadlock in XLA's pool of threads.
            (_, plan, state, is_committed, num_plans), known = jax.lax.optimization_barrier((carry, memory))
            key = jax.random.fold_in(jax.random.fold_in(known.key, 1), known.time)
            normals, known = jax.lax.optimization_barrier((draw_normals(self.plant, key=key), known))
            found = self.identify(known.stream, self._units(known.quiet), normals)
            is_good = found.is_sound & (found.is_safe | late)
            new = (found.plan, self._replay(found.plan, known.stream))
            plan, state = jax.tree.map(lambda new, old: jnp.where(is_good, new, old), new, (plan, state))
            return jnp.asarray(False), plan, state, is_committed | is_good, num_plans + is_good

        _, plan, state, is_committed, num_plans = jax.lax.while_loop(lambda carry: carry[0], turn, start)
        later = jnp.ceil(jnp.where(is_committed, GROWTH, RETRY) * memory.time).astype(memory.time.dtype)
        later = jnp.where(is_committed | late, later, jnp.minimum(later, cap))
        return replace(
            memory,
            plan=plan,
            state=state,
            is_committed=is_committed,
            num_plans=num_plans,
            next_fit=jnp.where(is_due, later, memory.next_fit),
        )

    def _replay(self, plan: Any, stream: Stream) -> Any:
        """The plan's state after the samples that are kept."""
        u_last = jnp.concatenate([stream.u[1:], jnp.zeros_like(stream.u[:1])])
        past = (stream.y[::-1], u_last[::-1])
        at_rest = self.blank()[1]
        return jax.lax.scan(lambda state, now: (self.advance(plan, state, *now), None), at_rest, past)[0]

    def _act(
        self, memory: IdentifiedMemory, y: Array, u_last: Array, normal: Array
    ) -> tuple[IdentifiedMemory, Array]:
        law, u_planned = self.respond(memory, normal)
        stabilizer, u_safe = self.plant.stabilizer.step(memory.stabilizer, y, u_last)
        is_finite = jnp.all(jnp.isfinite(u_planned))
        is_lost = memory.is_committed & ~is_finite
        is_guarded = memory.is_guarded | is_lost
        u_random = u_safe + self._excitation(memory.quiet) @ normal
        u = jnp.where(memory.is_committed, jnp.where(is_guarded, u_safe, u_planned), u_random)
        return replace(
            memory,
            time=memory.time + 1,
            law=law,
            is_guarded=is_guarded,
            num_trips=memory.num_trips + (is_lost & ~memory.is_guarded),
            next_fit=jnp.where(is_lost & ~memory.is_guarded, memory.time + 1, memory.next_fit),
            stabilizer=stabilizer,
        ), u

    def _excitation(self, quiet: Quiet) -> Float[Array, "input input"]:
        """A root of the covariance of random inputs; zero as long as it is quiet."""
        size = jnp.sqrt(quiet.mean)
        return jnp.where(quiet.count < NUM_QUIET, 0, size) * self.plant.probe

    def _units(self, quiet: Quiet) -> Units:
        root = self._excitation(quiet)
        return Units(
            jnp.sqrt(quiet.squares / jnp.maximum(quiet.count, 1)), jnp.sqrt(jnp.sum(root**2, axis=1))
        )


def _largest(quiet: Quiet) -> Float[Array, ""]:
    """y'Qy that no stable plant reaches by random inputs."""
    return GROWTH_LIMIT * quiet.mean
