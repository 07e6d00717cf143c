"""What online methods have in common: a learner is a policy that can say what it believes.

    memory, u = learner.step(memory, y, u_last)      as every policy
    learner.snapshot(memory)                         the model acted on, what is still possible, its status

A snapshot is a pure function of the memory, so that gaps, regret, rollouts, controllers and environments take
a learner as it is, and one loop (`adaptive.run`) gives an account of all of them.
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.errors import InvalidArgumentError
from lqgap.policies import AbstractPolicy
from lqgap.policies.policy import Memory
from lqgap.systems.setpoints import Rest


class Snapshot(eqx.Module):
    """What a learner believes after a step; what it does not have is of length zero."""

    acts_on: Float[Array, " parameter"]  # the parameters of the model acted on
    plausible: Bool[Array, " member"]
    num_changes: Int[Array, ""]  # of the model acted on or its set, so far: a switch is where it grows
    status: Int[Array, ""]  # 0 while it learns, else the number, from one, of one of its `reasons`
    is_fault: Bool[Array, ""]  # whether the last sample was absurd and counts as lost (`systems.faults`)
    is_warming: Bool[Array, ""]  # whether it has not begun to control: inputs are random
    figures: dict[str, Float[Array, ""]]  # of its own, traced and drawn by name


def nothing_told() -> Snapshot:
    """The snapshot of a policy that does not say what it believes."""
    nothing, no = jnp.zeros(0), jnp.asarray(False)
    return Snapshot(nothing, nothing.astype(bool), jnp.asarray(0), jnp.asarray(0), no, no, {})


class AbstractLearner(AbstractPolicy):
    """A policy that learns on the plant, and says what."""

    reasons: ClassVar[tuple[tuple[str, str], ...]] = ()  # name and advice of each status
    remedy: ClassVar[str] = ""  # what may help where a run diverges
    members: eqx.AbstractVar[Any]  # the `Finite` class that `plausible` counts, if it does

    @abc.abstractmethod
    def snapshot(self, memory: Memory) -> Snapshot:
        """What it believes."""

    def remarks(self, last_step: int) -> tuple[str, ...]:  # noqa: ARG002
        """Warnings that can be given before a run of this many steps."""
        return ()

    def rest(self, follow: Sequence[int]) -> Rest:  # noqa: ARG002
        """None, unless it acts by the filter of one member of a class or another."""
        raise InvalidArgumentError(
            f"a {type(self).__name__} cannot follow a reference: it learns by what regulation about the "
            f"operating point costs; banks, and learners over a class such as FilterBank, can"
        )

    def trainable(self) -> Any:
        """Nothing: it learns by itself."""
        return jax.tree.map(lambda _: False, self)
