"""A bank of models: one filter and one gain for each, weighed by how well it predicts.

    xhat^i_{t|t} , l_i(t) = sum_{s<=t} log N(y_s; C_i xhat^i_{s|s-1}, S^i_s)      of member i
    log posterior:  log_prior_i + l_i / temperature
    u = - sum_i posterior_i K^i xhat^i      (mixture)
    u = - K^j xhat^j                        (map: j the likeliest; thompson: j drawn at each step)

Over a horizon the gains and the filters are those of each step, exact from the first observation on; without
one, or with `filters="steady"`, they are constant. The filters' gains are planned for whole records: a lost
observation is predicted over, and does not change the gains after it.
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import IntLike, is_concrete, read_count
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.policies.policy import AbstractPolicy, move_ahead
from lqgap.systems import LQG, solve, solve_finite
from lqgap.systems.innovation import filter_step

MODES = ("mixture", "map", "thompson")
FILTERS = ("varying", "steady")
SHAPING_UNIT = 0.1  # of a gain: a change that matters about as much as one of the prior or the temperature


class BankMemory(eqx.Module):
    """The beliefs and likelihoods of all members."""

    xhat: Float[Array, "member state"]
    log_likelihood: Float[Array, " member"]
    time: Int[Array, ""]
    key: PRNGKeyArray


class ModelBank(AbstractPolicy):
    """The controllers of all members, mixed by their posterior weights.

    Args:
        systems: the members as one batched LQG (`members.systems`, or `lqgap.stack([...])`).
        horizon: last step of a finite horizon; None for the long run.
        mode: how the members' inputs become one.
        filters: exact from the first step on ("varying", needs a horizon), or constant ("steady").

    Trainable are the `shaping` of the gains, K^i (I + shaping_i / 10), the prior and the temperature.
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
        filters: Literal["varying", "steady"] | None = None,
    ):
        _require_batch(systems)
        filters = filters or ("steady" if horizon is None else "varying")
        _require_one_of("mode", mode, MODES)
        _require_one_of("filters", filters, FILTERS)
        if filters == "varying" and horizon is None:
            raise InvalidArgumentError("filters is 'varying', which needs a horizon: its gains are planned")
        if horizon is not None:
            horizon = read_count("horizon", horizon, least=0, most=1_000_000)
        self.A, self.B, self.C = systems.A, systems.B, systems.C
        gains = _steady_gains(systems) if horizon is None else _varying_gains(systems, horizon)
        self.K, self.L, self.S = gains
        if filters == "steady" and horizon is not None:
            _, self.L, self.S = _steady_gains(systems)
        if is_concrete((self.K, self.L)) and not jnp.all(jnp.isfinite(self.K)) & jnp.all(
            jnp.isfinite(self.L)
        ):
            raise NotConvergedError(
                "some member has no optimal controller: lqgap.solve says why, and the rest of the class is "
                "members.subset(lqgap.check_assumptions(members).measures.has_optimum)"
            )
        self.mode, self.last_step = mode, horizon
        self.shaping = jnp.zeros_like(self.A)
        self.log_prior = jnp.zeros_like(self.A[:, 0, 0])
        self.log_temperature = jnp.zeros_like(self.A[0, 0, 0])

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

    def trainable(self) -> Any:
        """Shaping, prior and temperature; the models and their filters stay."""
        return self.only(_trained)

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "ModelBank":
        """The bank planned for another horizon; what was trained stays."""
        if self.last_step is None:
            return self
        if systems is not None:
            kind: Any = (self.mode, "steady" if len(self.L) == 1 else "varying")
            fresh = ModelBank(systems, horizon=horizon, mode=kind[0], filters=kind[1])
            return eqx.tree_at(_trained, fresh, _trained(self))
        return eqx.tree_at(lambda bank: bank.K, self, move_ahead(self.K, self.last_step - horizon))

    def init(self, key: PRNGKeyArray) -> BankMemory:
        """Before the first observation."""
        return BankMemory(
            xhat=jnp.zeros_like(self.A[:, 0]),
            log_likelihood=jnp.zeros_like(self.A[:, 0, 0]),
            time=jnp.asarray(0),
            key=key,
        )

    def step(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, " input"]]:
        """Filter by every member, weigh, and choose."""
        memory, inputs = self.propose(memory, y, u_last)
        if self.mode == "mixture":
            return memory, self.weights(memory) @ inputs
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
        K, L, S = (_at(stack, now) for stack in (self.K, self.L, self.S))
        filtered = jax.vmap(filter_step, in_axes=(0, 0, 0, 0, 0, 0, None, None))(
            self.A, self.B, self.C, L, S, memory.xhat, u_last, y
        )
        gains = K + SHAPING_UNIT * K @ self.shaping
        memory = BankMemory(
            xhat=filtered.xhat,
            log_likelihood=memory.log_likelihood + filtered.log_density,
            time=now + 1,
            key=memory.key,
        )
        return memory, -jnp.einsum("kij,kj->ki", gains, filtered.xhat)

    def log_posterior(self, memory: BankMemory) -> Float[Array, " member"]:
        """Log of the posterior weights, up to a constant."""
        return self.log_prior + memory.log_likelihood * jnp.exp(-self.log_temperature)

    def weights(self, memory: BankMemory) -> Float[Array, " member"]:
        """The posterior weights."""
        return jax.nn.softmax(self.log_posterior(memory))


def _trained(bank: ModelBank) -> tuple[Any, ...]:
    return bank.shaping, bank.log_prior, bank.log_temperature


def _at(stack: Array, time: Array) -> Array:
    """The entry of this step; a stack of one serves all steps, and is then known to the compiler."""
    return stack[0] if len(stack) == 1 else jax.lax.dynamic_index_in_dim(stack, time, keepdims=False)


@eqx.filter_jit
def _steady_gains(systems: LQG) -> tuple[Array, Array, Array]:
    """K, L and S of all members, with a time axis of length one; NaN where there is no optimum."""
    optimum = jax.vmap(solve)(systems)
    valid = jnp.where(optimum.converged, 1.0, jnp.nan)[:, None, None]
    return (valid * optimum.K)[None], (valid * optimum.L)[None], optimum.S[None]


@eqx.filter_jit
def _varying_gains(systems: LQG, horizon: int) -> tuple[Array, Array, Array]:
    """K, L and S of all members, the time first."""
    finite = jax.vmap(lambda plant: solve_finite(plant, horizon=horizon))(systems)
    return jnp.swapaxes(finite.K, 0, 1), jnp.swapaxes(finite.L, 0, 1), jnp.swapaxes(finite.S, 0, 1)


def _require_batch(systems: Any) -> None:
    if not isinstance(systems, LQG):
        raise InvalidArgumentError(
            f"systems is a {type(systems).__name__}, expected a batched LQG: the field `systems` of a "
            f"simulator class, or lqgap.stack([...])"
        )
    if systems.A.ndim != 3:
        raise InvalidArgumentError(
            f"systems has A of shape {systems.A.shape}, expected (member, state, state): one plant is "
            f"lqgap.stack([plant]), or the policy StationaryLQG"
        )


def _require_one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(f"{name} is {value!r}, expected one of {', '.join(map(repr, allowed))}")
