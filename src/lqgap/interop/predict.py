"""A policy in the `predict` convention of stable-baselines3, for `evaluate_policy` and the like.

    action, state = predictor.predict(observation, state=state, episode_start=starts)

What the policy remembers travels in `state`, together with the last action, which it counts as applied.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from lqgap.arguments import checked, read_key
from lqgap.errors import InvalidArgumentError
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import LimitsLike, read_limits
from lqgap.policies.policy import Memory
from lqgap.states import strongly_typed


class PredictorState(eqx.Module):
    """What a policy remembers of one environment; `predict` hands over a batch of them."""

    memory: Memory
    u_last: Float[Array, " input"]
    time: Int[Array, ""]  # the step that comes next
    key: PRNGKeyArray  # for the episodes to come


class Predictor:
    """A policy that acts in one or many environments; compiled once for each number of them.

    Args:
        limits: (low, high), numbers or vectors: actions are clipped to them, as the environment would do, so
            that the policy knows what the plant received.
        key: for policies that draw random numbers; each environment and episode has its own.
    """

    @checked
    def __init__(self, policy: AbstractPolicy, *, limits: LimitsLike = None, key: PRNGKeyArray | None = None):
        self.policy = policy
        self._key = jax.random.key(0) if key is None else read_key(key)
        allowed = read_limits(limits, num_inputs=policy.num_inputs)

        def advance(state: PredictorState, start: Array, y: Array) -> tuple[PredictorState, Array]:
            key, key_episode = jax.random.split(state.key)
            fresh = PredictorState(
                memory=policy.init(key_episode),
                u_last=jnp.zeros_like(state.u_last),
                time=jnp.zeros_like(state.time),
                key=key,
            )
            now = jax.tree.map(lambda new, old: jnp.where(start, new, old), fresh, state)
            memory, u = policy.step(now.memory, y, now.u_last)
            u = allowed.clip(u, now.u_last)
            return strongly_typed(PredictorState(memory=memory, u_last=u, time=now.time + 1, key=now.key)), u

        self._advance = jax.jit(jax.vmap(advance))
        self._begin = jax.jit(self._first_states, static_argnums=0)

    @checked
    def predict(
        self,
        observation: Any,
        state: PredictorState | None = None,
        episode_start: Any = None,
        deterministic: bool = True,  # noqa: ARG002
    ) -> tuple[np.ndarray, PredictorState]:
        """Actions for observations, one or a row for each environment, and the state to hand over next time.

        Args:
            observation: NaN is a lost component, as for every policy.
            state: from the last call; None before the first.
            episode_start: whether each observation is the first of an episode; without a state, all are.
                Where environments reset in the same step, it is what that step said of the end of episodes.
            deterministic: of no effect: whether lqgap's policies draw is theirs to say.
        """
        y, is_single = self._read_observation(observation)
        start = _read_starts(episode_start, len(y)) if state is not None else np.ones(len(y), dtype=bool)
        state = self._begin(len(y)) if state is None else state
        self._require_fit(state, start, len(y))
        new_state, u = self._advance(state, start, y)
        actions = np.array(u)
        return (actions[0] if is_single else actions), new_state

    def _first_states(self, count: int) -> PredictorState:
        def begin(key: PRNGKeyArray) -> PredictorState:
            u_last, time = jnp.zeros(self.policy.num_inputs), jnp.asarray(0)
            return PredictorState(memory=self.policy.init(key), u_last=u_last, time=time, key=key)

        return strongly_typed(jax.vmap(begin)(jax.random.split(self._key, count)))

    def _read_observation(self, observation: Any) -> tuple[Float[np.ndarray, "env output"], bool]:
        size = self.policy.num_outputs
        try:
            y = np.asarray(observation, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgumentError(f"observation is {observation!r}, expected {size} numbers") from None
        if y.ndim not in (1, 2) or y.shape[-1] != size or len(y) == 0:
            raise InvalidArgumentError(
                f"observation has shape {y.shape}, expected ({size},) or (environments, {size})"
            )
        return (y[None], True) if y.ndim == 1 else (y, False)

    def _require_fit(self, state: PredictorState, start: Bool[np.ndarray, " env"], count: int) -> None:
        if len(state.time) != count:
            raise InvalidArgumentError(
                f"state is that of {len(state.time)} environments, and there are {count} observations"
            )
        horizon = self.policy.horizon
        if horizon is not None and np.any(np.where(start, 0, state.time) > horizon):
            raise InvalidArgumentError(
                f"the policy was made for steps 0..{horizon}, and an episode is longer: make it for the "
                f"whole episode, or use one without a horizon"
            )


def _read_starts(starts: Any, count: int) -> Bool[np.ndarray, " env"]:
    starts = np.zeros(count, dtype=bool) if starts is None else np.atleast_1d(np.asarray(starts))
    if starts.shape != (count,):
        raise InvalidArgumentError(f"episode_start has shape {starts.shape}, expected ({count},)")
    return starts.astype(bool)
