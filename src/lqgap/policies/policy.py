"""The shape of a policy: observation in, input out.

    memory = policy.init(key)
    memory, u = policy.step(memory, y, u_last)

`u_last` is the input the plant really received one step before (zeros at first), so that saturation and
lost packets never corrupt a filter. A lost observation, or a lost component of one, is NaN and means
"predict only". Random policies carry their key in memory. A policy never sees a system.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.errors import InvalidArgumentError
from lqgap.systems import LQG
from lqgap.systems.setpoints import Rest

Memory = Any  # a pytree of arrays, of fixed shapes


class AbstractPolicy(eqx.Module):
    """Anything that chooses inputs from the observations and inputs so far."""

    parts: ClassVar[tuple[type, ...]] = ()  # classes of what it is made of, besides policies: for files

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

    @property
    def needs_smoothing(self) -> bool:
        """Whether it makes choices whose worth no derivative along a rollout shows."""
        return False

    def rest(self, follow: Sequence[int]) -> Rest:  # noqa: ARG002
        """Where the plants of its models rest at references of the outputs that are followed."""
        raise InvalidArgumentError(
            f"a {type(self).__name__} cannot follow a reference: it does not steer by models of the plant, "
            f"whose rest it could aim at; optimal controllers and banks do"
        )

    def trainable(self) -> Any:
        """A tree of truth values like the policy: which of its arrays training may change."""
        return jax.tree.map(eqx.is_inexact_array, self)

    def only(self, where: Callable[[Self], Any]) -> Any:
        """The tree of `trainable` in which only these parts may change; of policies, what they allow."""
        nothing = jax.tree.map(lambda _: False, self)
        return eqx.tree_at(where, nothing, jax.tree.map(_mask, where(self), is_leaf=_is_policy))

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "AbstractPolicy":  # noqa: ARG002
        """The policy with its gains planned for steps 0..horizon, if it has planned ones.

        Args:
            systems: the members of its banks, which a longer horizon needs; without them gains keep their
                shapes, so that nothing is compiled anew, and steps after the horizon are without meaning.
        """
        return self


class AbstractWrapper(AbstractPolicy):
    """A policy around another one, of the same sizes and horizon."""

    @property
    @abc.abstractmethod
    def inside(self) -> AbstractPolicy:
        """The policy that is wrapped."""

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.inside.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.inside.num_outputs

    @property
    def horizon(self) -> int | None:
        """That of the policy inside."""
        return self.inside.horizon

    @property
    def needs_smoothing(self) -> bool:
        """Whether the policy inside does."""
        return self.inside.needs_smoothing

    def rest(self, follow: Sequence[int]) -> Rest:
        """That of the policy inside."""
        return self.inside.rest(follow)

    def trainable(self) -> Any:
        """What is trainable in the policy inside."""
        return self.only(lambda policy: policy.inside)

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "AbstractWrapper":
        """The same around the policy inside, planned for another horizon."""
        planned = self.inside.for_horizon(horizon, systems=systems)
        return eqx.tree_at(lambda policy: policy.inside, self, planned)


def require_policy(name: str, policy: Any) -> AbstractPolicy:
    """The argument, if it is a policy."""
    if not isinstance(policy, AbstractPolicy):
        raise InvalidArgumentError(f"{name} is a {type(policy).__name__}, expected an lqgap policy")
    return policy


class AbstractLinearPolicy(AbstractPolicy):
    """A policy that is linear in what it saw, so that its cost is known exactly."""

    @abc.abstractmethod
    def at(self, time: Any) -> "LinearStep":
        """The matrices of one step; they stay the same from `num_transient` on, unless there is a horizon."""

    @property
    def num_transient(self) -> int:
        """Steps at first whose matrices differ; none if they never change."""
        return 0


class LinearStep(eqx.Module):
    """One step of a linear dynamic controller: u = Cc xi + Dc y ,  xi_+ = Ac xi + Bc y ,  xi_0 = 0."""

    Ac: Float[Array, "order order"]
    Bc: Float[Array, "order output"]
    Cc: Float[Array, "input order"]
    Dc: Float[Array, "input output"]


def entry_at(stack: Array, time: Any) -> Array:
    """The entry of a step, the last one after it; a stack of one is known to the compiler."""
    return stack[0] if len(stack) == 1 else jax.lax.dynamic_index_in_dim(stack, time, keepdims=False)


def require_one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise unless the argument is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgumentError(f"{name} is {value!r}, expected one of {', '.join(map(repr, allowed))}")


def move_ahead(gains: Float[Array, "time *gain"], steps: int) -> Float[Array, "time *gain"]:
    """Gains this many steps ahead; the last one stays to the end."""
    if steps < 0:
        raise InvalidArgumentError(
            f"horizon is {len(gains) - 1 - steps}, but gains are planned for steps 0..{len(gains) - 1}: a "
            f"longer plan needs the systems"
        )
    return gains[jnp.minimum(jnp.arange(len(gains)) + steps, len(gains) - 1)]


def _is_policy(part: Any) -> bool:
    return isinstance(part, AbstractPolicy)


def _mask(part: Any) -> Any:
    return part.trainable() if _is_policy(part) else eqx.is_inexact_array(part)
