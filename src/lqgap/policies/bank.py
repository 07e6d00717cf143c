"""A bank of models: one filter and one gain for each, weighed by how well it predicts.

    xhat^i_{t|t} , l_i(t) = sum_{s<=t} log N(y_s; C_i xhat^i_{s|s-1}, S^i_s)      of member i
    log posterior:  log_prior_i + l_i / temperature
    u = - sum_i posterior_i K^i xhat^i      (mixture)
    u = - K^j xhat^j                        (map: j the likeliest; thompson: j drawn at each step)
    K^i = optimal gain of i, times I + doubt shaping_i / 5 ,     doubt = N/(N-1) (1 - sum_i posterior_i^2)

so that what training shapes is what is done in doubt: once a member is certain its optimal gain is played.

Filters are exact from the first observation on and steady once they have settled (with `filters="steady"`,
constant). Gains are those of the long run, so that a bank goes on for ever, or with a horizon those of each
step of a task that ends. The filters' gains are planned for records without losses, and what losses change is
remembered: filters and likelihoods stay exact (`systems.losses`). What a sample counts for that is absurd to
every member, and how far one may lead, is said in `systems.faults`. Where inputs of a mixture cancel, the
likeliest member's is played.
"""

from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import IntLike, is_concrete, read_count
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.policies.optimal import FILTERS
from lqgap.policies.policy import AbstractPolicy, entry_at, move_ahead, require_one_of
from lqgap.policies.target import AbstractTarget, Origin
from lqgap.systems import LQG, Optimum, solve_finite
from lqgap.systems.faults import Gate
from lqgap.systems.innovation import fill_lost
from lqgap.systems.losses import AbstractLosses, Losses
from lqgap.systems.natural import naturalize
from lqgap.systems.optimum import solve_members
from lqgap.systems.setpoints import Rest, find_rest
from lqgap.systems.settling import settle_filters

MODES = ("mixture", "map", "thompson")
CANCELLED = 1e-6  # of the members' mean size: what is left of inputs that cancel
SHAPING_UNIT = 0.2  # of a gain: a change that matters about as much as one of the prior or the temperature


class BankMemory(eqx.Module):
    """The beliefs and likelihoods of all members."""

    xhat: Float[Array, "member state"]
    losses: AbstractLosses  # of every member
    target: AbstractTarget  # of every member
    log_likelihood: Float[Array, " member"]
    gate: Gate
    time: Int[Array, ""]
    key: PRNGKeyArray


class ModelBank(AbstractPolicy):
    """The controllers of all members, mixed by their posterior weights.

    Args:
        systems: the members as one batched LQG (`members.systems`, or `lqgap.stack([...])`).
        horizon: last step of a task that ends, whose gains are planned for it; None for one that goes on.
        mode: how the members' inputs become one.
        filters: exact from the first step on ("varying"), or constant ("steady").

    Filters run in the natural coordinates of each member (`systems.natural`). Trainable are the `shaping` of
    the gains in them, K^i (I + doubt shaping_i / 5), the prior and the temperature.
    """

    A: Float[Array, "member state state"]
    B: Float[Array, "member state input"]
    C: Float[Array, "member output state"]
    K: Float[Array, "gain_time member input state"]
    L: Float[Array, "filter_time member state output"]
    S: Float[Array, "filter_time member output output"]
    shaping: Float[Array, "member state state"]
    log_prior: Float[Array, " member"]
    log_temperature: Float[Array, ""]
    mode: str = eqx.field(static=True)
    last_step: int | None = eqx.field(static=True)

    def __init__(
        self,
        systems: LQG,
        *,
        horizon: IntLike | None = None,
        mode: Literal["mixture", "map", "thompson"] = "mixture",
        filters: Literal["varying", "steady"] = "varying",
    ):
        _require_batch(systems)
        require_one_of("mode", mode, MODES)
        require_one_of("filters", filters, FILTERS)
        if horizon is not None:
            horizon = read_count("horizon", horizon, least=0, most=1_000_000)
        systems = naturalize(systems)  # so that units of the state do not decide what training reaches
        self.A, self.B, self.C = systems.A, systems.B, systems.C
        self.K, self.L, self.S = _gains(systems, horizon, filters)
        gains = (self.K, self.L)
        if is_concrete(gains) and not all(np.all(np.isfinite(np.asarray(gain))) for gain in gains):
            raise NotConvergedError(
                "some member has no optimal controller: lqgap.solve says why, and the rest of the class is "
                "members.subset(lqgap.check_assumptions(members).measures.has_optimum)"
            )
        self.mode, self.last_step = mode, horizon
        none = np.zeros(self.A.shape, self.A.dtype)
        self.shaping, self.log_prior, self.log_temperature = jax.device_put(
            (none, none[:, 0, 0], none[0, 0, 0])
        )

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.B.shape[-1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.C.shape[-2]

    @property
    def horizon(self) -> int | None:
        """The last step it is made for, if its gains are those of a horizon."""
        return self.last_step

    def rest(self, follow: Sequence[int]) -> Rest:
        """That of every member."""
        return find_rest(self.A, self.B, self.C, self.K[0], follow=follow)

    def trainable(self) -> Any:
        """Shaping, prior and temperature; the models and their filters stay."""
        return self.only(_trained)

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "ModelBank":
        """The bank planned for another horizon; what was trained stays."""
        if self.last_step is None:
            return self
        if systems is not None:
            return eqx.tree_at(_trained, self.of(systems, horizon=horizon), _trained(self))
        return eqx.tree_at(lambda bank: bank.K, self, move_ahead(self.K, self.last_step - horizon))

    def of(self, systems: LQG, *, horizon: int | None) -> "ModelBank":
        """The untrained bank of other plants, in the same mode and with the same kind of filters."""
        mode: Any = self.mode
        return ModelBank(
            systems, horizon=horizon, mode=mode, filters="steady" if len(self.L) == 1 else "varying"
        )

    def init(self, key: PRNGKeyArray) -> BankMemory:
        """Before the first observation."""
        return BankMemory(
            xhat=jnp.zeros_like(self.A[:, 0]),
            losses=jax.vmap(Losses)(jnp.zeros_like(self.A)),
            target=Origin(),
            log_likelihood=jnp.zeros_like(self.A[:, 0, 0]),
            gate=Gate.unused(),
            time=jnp.asarray(0),
            key=key,
        )

    def step(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, " input"]]:
        """Filter by every member, weigh, and choose."""
        memory, inputs = self.propose(memory, y, u_last)
        if self.mode == "mixture":
            return memory, mix(self.weights(memory), inputs)
        if self.mode == "map":
            return memory, inputs[jnp.argmax(self.log_posterior(memory))]
        key, key_draw = jax.random.split(memory.key)
        drawn = jax.random.categorical(key_draw, self.log_posterior(memory))
        return eqx.tree_at(lambda m: m.key, memory, key), inputs[drawn]

    def propose(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, "member input"]]:
        """The memory after an observation, and the input each member would choose."""
        now = memory.time
        K, *planned = (entry_at(stack, now) for stack in (self.K, self.L, self.S))
        L, S = jax.vmap(lambda losses, C, L, S: losses.gains(C, L, S))(memory.losses, self.C, *planned)
        predicted = jnp.einsum("kij,kj->ki", self.A, memory.xhat) + self.B @ u_last
        filled = jax.vmap(lambda C, S, x: fill_lost(y - C @ x, S))(self.C, S, predicted)
        gate = memory.gate.judge(filled.distance, self.num_outputs)
        xhat = predicted + jnp.einsum("kij,kj->ki", L, jnp.where(gate.is_lost, 0, filled.innovation))
        seen = ~(jnp.isnan(y) | gate.is_lost)
        memory = BankMemory(
            xhat=xhat,
            losses=jax.vmap(lambda losses, *model: losses.after(*model, seen))(
                memory.losses, self.A, self.C, *planned
            ),
            target=memory.target.move(),
            log_likelihood=gate.weigh(memory.log_likelihood, filled, jnp.sum(seen)),
            gate=gate,
            time=now + 1,
            key=memory.key,
        )
        # One product with gains that all rollouts share: mixed ones would be each rollout's own.
        both = jnp.concatenate([K, SHAPING_UNIT * K @ self.shaping], axis=1)
        product = jnp.einsum("kij,kj->ki", both, memory.target.error(xhat))
        wanted, shaped = jnp.split(product, 2, axis=1)
        return memory, memory.target.feed(wanted + self.doubt(memory) * shaped)

    def log_posterior(self, memory: BankMemory) -> Float[Array, " member"]:
        """Log of the posterior weights, up to a constant."""
        return self.log_prior + memory.log_likelihood * jnp.exp(-self.log_temperature)

    def weights(self, memory: BankMemory) -> Float[Array, " member"]:
        """The posterior weights."""
        return jax.nn.softmax(self.log_posterior(memory))

    def doubt(self, memory: BankMemory) -> Float[Array, ""]:
        """N/(N-1) (1 - sum w^2): one if all are as likely, or there is one alone; zero if one is certain."""
        count = len(self.log_prior)
        if count == 1:
            return jnp.ones_like(self.log_temperature)
        return count / (count - 1) * (1 - jnp.sum(self.weights(memory) ** 2))


def mix(weights: Float[Array, " member"], inputs: Float[Array, "member input"]) -> Float[Array, " input"]:
    """The mean of the inputs; where they cancel, that of the likeliest member, from which one can learn."""
    mean, size = weights @ inputs, weights @ jnp.abs(inputs)
    cancels = jnp.sum(jnp.abs(mean)) <= CANCELLED * jnp.sum(size)
    return jnp.where(cancels, inputs[jnp.argmax(weights)], mean)


@eqx.filter_jit
def planned_gains(systems: LQG, horizon: int) -> tuple[Array, Array, Array]:
    """K, L and S of all members, the time first."""
    finite = jax.vmap(lambda plant: solve_finite(plant, horizon=horizon))(systems)
    return jnp.swapaxes(finite.K, 0, 1), jnp.swapaxes(finite.L, 0, 1), jnp.swapaxes(finite.S, 0, 1)


def _trained(bank: ModelBank) -> tuple[Any, ...]:
    return bank.shaping, bank.log_prior, bank.log_temperature


def _gains(systems: LQG, horizon: int | None, filters: str) -> tuple[Array, Array, Array]:
    """K, L and S of all members, the time first; NaN where there is no optimum."""
    if horizon is not None and filters == "varying":
        return planned_gains(systems, horizon)
    optima = _mark(solve_members(systems))
    K = optima.K[None] if horizon is None else planned_gains(systems, horizon)[0]
    if filters == "steady":
        return K, optima.L[None], optima.S[None]
    exact = settle_filters(systems, optima)
    return K, exact.L, exact.S


@jax.jit
def _mark(optima: Optimum) -> Optimum:
    """With gains that are NaN where there is no optimum."""
    valid = jnp.where(optima.converged, 1.0, jnp.nan)[:, None, None]
    return eqx.tree_at(lambda o: (o.K, o.L), optima, (valid * optima.K, valid * optima.L))


def _require_batch(systems: LQG) -> None:
    if systems.A.ndim != 3:
        raise InvalidArgumentError(
            f"systems has A of shape {systems.A.shape}, expected (member, state, state): one plant is "
            f"lqgap.stack([plant]), or the policy StationaryLQG"
        )
