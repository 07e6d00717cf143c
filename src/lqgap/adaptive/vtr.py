"""LQG-VTR over a finite class: act by the most optimistic member that the samples leave.

At each step t after the warm-up

    a  y_t completes the sample E_{t-1}: its target Y is the bias, by the model acted on, of what came true;
    b  if the importance score reaches one, the samples are merged, the member with the smallest loss and the
       set around it are found anew, and the member of the set with the smallest J is acted on from now on;
    c  u_t = -K xhat_{t|t} of that member, from the whole history; if xhat leaves a ball, u = 0 for ever;
    d  all members predict the next target from the last `length` observations and inputs: f_i(E_t).

No input is chosen at the last step, nor a sample formed. All filters and all predictions are one batched
product each, and a step costs the same however many came before it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.adaptive.constants import VTRConstants
from lqgap.adaptive.statistics import Statistics, add_sample, confidence_set, estimate, merge, no_samples
from lqgap.evaluation.reading import read_members
from lqgap.linalg.arguments import read_count
from lqgap.systems import (
    LQG,
    Optimum,
    ValueTarget,
    arx_matrix,
    require_converged,
    solve,
    steady_correct,
    steady_predict,
    value_target,
)


class VTRMemory(eqx.Module):
    """What one step hands to the next."""

    time: Int[Array, ""]
    key: PRNGKeyArray
    xhat: Float[Array, "member state"]
    past_inputs: Float[Array, "lag input"]  # newest first
    past_outputs: Float[Array, "lag output"]
    statistics: Statistics
    members: Bool[Array, " member"]  # the set
    model: Int[Array, ""]
    num_switches: Int[Array, ""]
    is_halted: Bool[Array, ""]
    target: ValueTarget  # of the sample that waits for its observation
    predictions: Float[Array, " member"]


class Info(eqx.Module):
    """What happened in a step."""

    is_switch: Bool[Array, ""]
    is_halted: Bool[Array, ""]
    model: Int[Array, ""]
    estimate: Int[Array, ""]
    members: Bool[Array, " member"]


class LQGVTR(eqx.Module):
    """The algorithm, as an `init` and a `step` that also tells what it did."""

    systems: LQG
    optima: Optimum
    N: Float[Array, "member output window"]
    constants: VTRConstants
    horizon: int = eqx.field(static=True)
    num_waiting: int = eqx.field(static=True)

    def __init__(self, members: Any, *, horizon: Any, constants: VTRConstants, num_waiting: Any = 64):
        self.systems = read_members(members)
        self.horizon = read_count("horizon", horizon, least=1, most=100_000_000)
        self.constants = constants
        self.num_waiting = read_count("num_waiting", num_waiting, least=0)
        self.optima = jax.vmap(solve)(self.systems)
        require_converged(self.optima, self.systems)
        self.N = _arx_matrices(self.systems, self.optima, constants.length)

    def init(self, key: PRNGKeyArray) -> VTRMemory:
        """Before the first observation: all members are possible, the one with the smallest J is acted on."""
        count = len(self.systems.A)
        num_outputs, num_inputs = self.systems.C.shape[1], self.systems.B.shape[2]
        length = self.constants.length
        return VTRMemory(
            time=jnp.asarray(0),
            key=key,
            xhat=jnp.zeros(self.systems.A.shape[:2]),
            past_inputs=jnp.zeros((length, num_inputs)),
            past_outputs=jnp.zeros((length, num_outputs)),
            statistics=no_samples(count, num_waiting=self.num_waiting),
            members=jnp.ones(count, dtype=bool),
            model=jnp.argmin(self.optima.J),
            num_switches=jnp.asarray(0),
            is_halted=jnp.asarray(False),
            target=ValueTarget(
                jnp.zeros((num_outputs, num_outputs)), jnp.zeros(num_outputs), jnp.asarray(0.0)
            ),
            predictions=jnp.zeros(count),
        )

    def step(
        self, memory: VTRMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[VTRMemory, Float[Array, " input"], Info]:
        """Observe, maybe switch, act, predict."""
        constants, now = self.constants, memory.time
        statistics, is_due = _complete(memory, y, jnp.asarray(constants.psi), constants.num_warmup)
        is_switch = is_due & (memory.num_switches < constants.max_switches) & ~memory.is_halted
        statistics, members, best, model = self._switch(memory, statistics, is_switch)

        xhat = _filter(self.systems, self.optima, memory.xhat, y, u_last)
        past_inputs = _push(memory.past_inputs, u_last)
        past_outputs = _push(memory.past_outputs, y)
        is_active = now >= constants.num_warmup
        belief = xhat[model]
        is_halted = memory.is_halted | (is_active & (jnp.linalg.norm(belief) > constants.state_bound))
        u = self._act(memory, belief, model, is_active, is_halted)

        eta = jnp.concatenate([past_inputs.ravel(), past_outputs.ravel(), u])
        optimum, plant = jax.tree.map(lambda leaf: leaf[model], (self.optima, self.systems))
        target = value_target(optimum, plant, belief, u)
        predictions = jax.vmap(lambda N, S: target.mean(N @ eta, S))(self.N, self.optima.S)
        memory = VTRMemory(
            time=now + 1,
            key=memory.key,
            xhat=xhat,
            past_inputs=past_inputs,
            past_outputs=past_outputs,
            statistics=statistics,
            members=members,
            model=model,
            num_switches=memory.num_switches + is_switch,
            is_halted=is_halted,
            target=target,
            predictions=predictions,
        )
        return memory, u, Info(is_switch, is_halted, model, best, members)

    def _switch(
        self, memory: VTRMemory, statistics: Statistics, is_switch: Bool[Array, ""]
    ) -> tuple[Statistics, Array, Array, Array]:
        merged = merge(statistics)
        statistics = jax.tree.map(lambda a, b: jnp.where(is_switch, a, b), merged, statistics)
        everyone = jnp.ones_like(memory.members)
        best = estimate(statistics, everyone)
        found = confidence_set(statistics, everyone, beta=jnp.asarray(self.constants.beta))
        members = jnp.where(is_switch, found, memory.members)
        optimistic = jnp.argmin(jnp.where(members, self.optima.J, jnp.inf))
        return statistics, members, best, jnp.where(is_switch, optimistic, memory.model)

    def _act(
        self,
        memory: VTRMemory,
        belief: Float[Array, " state"],
        model: Int[Array, ""],
        is_active: Bool[Array, ""],
        is_halted: Bool[Array, ""],
    ) -> Float[Array, " input"]:
        draw = jax.random.normal(jax.random.fold_in(memory.key, memory.time), self.systems.B.shape[-1:])
        u = jnp.where(is_active, -self.optima.K[model] @ belief, self.constants.sigma_u * draw)
        return jnp.where(is_halted | (memory.time >= self.horizon), 0.0, u)


@eqx.filter_jit
def _arx_matrices(systems: LQG, optima: Optimum, length: int) -> Array:
    return jax.vmap(lambda optimum, plant: arx_matrix(optimum, plant, length=length))(optima, systems)


def _complete(
    memory: VTRMemory, y: Float[Array, " output"], psi: Float[Array, ""], num_warmup: int
) -> tuple[Statistics, Bool[Array, ""]]:
    """The statistics with the sample that y completes; the first one begins right after the warm-up."""
    has_sample = (memory.time > num_warmup) & ~memory.is_halted

    def add(statistics: Statistics) -> tuple[Statistics, Array]:
        return add_sample(statistics, memory.predictions, memory.target(y), psi=psi)

    return jax.lax.cond(has_sample, add, lambda s: (s, jnp.asarray(False)), memory.statistics)


def _filter(systems: LQG, optima: Optimum, xhat: Array, y: Array, u_last: Array) -> Array:
    """xhat_{t|t} of all members, by their steady filters."""

    def correct(plant: LQG, optimum: Optimum, xhat: Array) -> Array:
        return steady_correct(optimum, plant, steady_predict(plant, xhat, u_last), y)

    return jax.vmap(correct)(systems, optima, xhat)


def _push(rows: Array, newest: Array) -> Array:
    return jnp.concatenate([newest[None], rows[:-1]])
