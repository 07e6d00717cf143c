"""A policy from training, run as it is: what it learned it learned in simulation.

    memory, u = policy.step(memory, y, u_last)      with no state beyond the policy's

If it has a bank, the likelihoods in its memory tell which members are still possible and which is likeliest.
Reference: robust training, and domain randomisation (Tobin et al. 2017).
Guarantee: its gap on the class it was trained on, as certified in simulation; none outside of it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.adaptive.learner import AbstractLearner, Snapshot, nothing_told
from lqgap.adaptive.over_class.candidates import DELTA
from lqgap.adaptive.vtr.evidence import likely_members
from lqgap.policies import AbstractPolicy
from lqgap.policies.bank import BankMemory
from lqgap.policies.policy import Memory
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG
from lqgap.systems.setpoints import Rest


class TrainedPolicy(AbstractLearner):
    """Any policy, as it is, with what its bank believes if it has one of these members."""

    policy: AbstractPolicy
    members: Finite | None

    parts: ClassVar[tuple[type, ...]] = (Finite, LQG)

    def __init__(self, policy: AbstractPolicy, members: Members | None = None):
        self.policy = policy
        known = None if members is None else Finite.of(members)
        bank = _bank_of(jax.eval_shape(self.policy.init, jax.random.key(0)))
        fits = known is not None and bank is not None and len(bank.log_likelihood) == len(known)
        self.members = known if fits else None

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.policy.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.policy.num_outputs

    @property
    def horizon(self) -> int | None:
        """That of the policy."""
        return self.policy.horizon

    def rest(self, follow: Sequence[int]) -> Rest:
        """That of the policy."""
        return self.policy.rest(follow)

    def for_horizon(self, horizon: int, *, systems: LQG | None = None) -> "TrainedPolicy":
        """The same, planned for another horizon."""
        planned = self.policy.for_horizon(horizon, systems=systems)
        return eqx.tree_at(lambda trained: trained.policy, self, planned)

    def init(self, key: PRNGKeyArray) -> Memory:
        """The policy's."""
        return self.policy.init(key)

    def step(
        self, memory: Memory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[Memory, Float[Array, " input"]]:
        """The policy's."""
        return self.policy.step(memory, y, u_last)

    def snapshot(self, memory: Memory) -> Snapshot:
        """The likeliest member, and those that are still possible, if there is a bank."""
        bank = _bank_of(memory)
        if self.members is None or bank is None:
            return nothing_told()
        everyone = jnp.ones(len(self.members), dtype=bool)
        return Snapshot(
            acts_on=self.members.parameters[jnp.argmax(bank.log_likelihood)],
            plausible=likely_members(bank.log_likelihood, everyone, delta=jnp.asarray(DELTA)),
            num_changes=jnp.asarray(0),
            status=jnp.asarray(0),
            is_fault=bank.gate.is_lost,
            is_warming=jnp.asarray(False),
            figures={},
        )


def _bank_of(memory: Any) -> BankMemory | None:
    """The first bank in a memory."""
    is_bank = lambda part: isinstance(part, BankMemory)  # noqa: E731
    return next((part for part in jax.tree.leaves(memory, is_leaf=is_bank) if is_bank(part)), None)
