"""The shape of a policy: observation in, input out.

    memory = policy.init(key)
    memory, u = policy.step(memory, y, u_last)

`u_last` is the input the plant really received one step before (zeros at first), so that saturation and
lost packets never corrupt a filter. A lost observation, or a lost component of one, is NaN and means
"predict only". Random policies carry their key in memory. A policy never sees a system.
"""

import abc
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.errors import InvalidArgumentError

Memory = Any  # a pytree of arrays, of fixed shapes


class AbstractPolicy(eqx.Module):
    """Anything that chooses inputs from the observations and inputs so far."""

    @property
    @abc.abstractmethod
    def num_inputs(self) -> int:
        """Length of u."""

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """Length of y."""

    @property
    def horizon(self) -> int | None:
        """The last step the policy is made for; None if it never ends."""
        return None

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray) -> Memory:
        """The memory before the first observation."""

    @abc.abstractmethod
    def step(
        self, memory: Memory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[Memory, Float[Array, " input"]]:
        """Take in y_t and the input u_{t-1} really applied, choose u_t."""

    def trainable(self) -> Any:
        """A tree of truth values like the policy: which of its arrays training may change."""
        return jax.tree.map(eqx.is_inexact_array, self)


def require_policy(name: str, policy: Any) -> AbstractPolicy:
    """The argument, if it is a policy."""
    if not isinstance(policy, AbstractPolicy):
        raise InvalidArgumentError(f"{name} is a {type(policy).__name__}, expected an lqgap policy")
    return policy


class AbstractLinearPolicy(AbstractPolicy):
    """A policy that is linear in what it saw, so that its cost is known exactly."""

    @abc.abstractmethod
    def at(self, time: Any) -> "LinearStep":
        """The matrices of one step; they do not depend on `time` unless the policy has a horizon."""


class LinearStep(eqx.Module):
    """One step of a linear dynamic controller: u = Cc xi + Dc y ,  xi_+ = Ac xi + Bc y ,  xi_0 = 0."""

    Ac: Float[Array, "order order"]
    Bc: Float[Array, "order output"]
    Cc: Float[Array, "input order"]
    Dc: Float[Array, "input output"]
