"""One of several policies, drawn once at the start: minimax policies may need it."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.arguments import ArrayLike, is_concrete, read_array
from lqgap.errors import InvalidArgumentError
from lqgap.policies.policy import AbstractPolicy, Memory, require_policy
from lqgap.systems import LQG


class MixtureMemory(eqx.Module):
    """Which policy was drawn, and the memories of all of them."""

    drawn: Int[Array, ""]
    memories: tuple[Memory, ...]


class Mixture(AbstractPolicy):
    """Draws one of several policies at the start, with the given probabilities (equal if left out)."""

    policies: tuple[AbstractPolicy, ...]
    log_weights: Float[Array, " policy"]

    def __init__(self, policies: Sequence[AbstractPolicy], weights: ArrayLike | None = None):
        if not isinstance(policies, Sequence):
            raise InvalidArgumentError(
                f"policies is a {type(policies).__name__}, expected a list of policies"
            )
        self.policies = tuple(require_policy(f"policies[{i}]", policy) for i, policy in enumerate(policies))
        if not self.policies:
            raise InvalidArgumentError("policies is empty, expected at least one")
        sizes = [(policy.num_inputs, policy.num_outputs) for policy in self.policies]
        if len(set(sizes)) > 1:
            raise InvalidArgumentError(f"the policies differ in (inputs, outputs): {sizes}")
        count = len(self.policies)
        weights = read_array("weights", np.ones(count) if weights is None else weights, num_axes=1)
        if weights.shape != (count,):
            raise InvalidArgumentError(
                f"weights has {len(weights)} entries, expected one for each of {count}"
            )
        if is_concrete(weights) and not (np.all(weights >= 0) and np.sum(weights) > 0):
            raise InvalidArgumentError(f"weights is {weights.tolist()}, expected probabilities")
        relative = weights / jnp.max(weights)
        self.log_weights = jnp.log(relative / jnp.sum(relative))

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.policies[0].num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.policies[0].num_outputs

    @property
    def horizon(self) -> int | None:
        """The shortest horizon among the policies."""
        horizons = [policy.horizon for policy in self.policies if policy.horizon is not None]
        return min(horizons, default=None)

    def trainable(self) -> Any:
        """What is trainable in the policies, and how likely each is drawn."""
        return self.only(lambda mixture: (mixture.policies, mixture.log_weights))

    @property
    def needs_smoothing(self) -> bool:
        """Whether one of the policies does."""
        return any(policy.needs_smoothing for policy in self.policies)

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "Mixture":
        """The mixture of the same policies, each planned for another horizon."""
        planned = tuple(policy.for_horizon(horizon, systems=systems) for policy in self.policies)
        return eqx.tree_at(lambda mixture: mixture.policies, self, planned)

    def init(self, key: PRNGKeyArray) -> MixtureMemory:
        """Draw a policy."""
        key_draw, *keys = jax.random.split(key, 1 + len(self.policies))
        return MixtureMemory(
            drawn=jax.random.categorical(key_draw, self.log_weights),
            memories=tuple(policy.init(k) for policy, k in zip(self.policies, keys, strict=True)),
        )

    def step(
        self, memory: MixtureMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[MixtureMemory, Float[Array, " input"]]:
        """All policies watch, the one drawn acts."""
        steps = [
            policy.step(own, y, u_last) for policy, own in zip(self.policies, memory.memories, strict=True)
        ]
        inputs = jnp.stack([u for _, u in steps])
        return MixtureMemory(memory.drawn, tuple(own for own, _ in steps)), inputs[memory.drawn]
