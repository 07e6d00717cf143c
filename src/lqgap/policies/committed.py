"""Identify, then control: a bank that makes up its mind once.

Up to step `steps` the members' likelihoods are summed as in `bank`; after it they stay as they are, and the
controller of the likeliest member acts for good. With random inputs before, this is what an engineer does who
excites a plant, fits a model to the record and puts the model's controller on:

    RandomProbe(steps, Committed(bank, steps))
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import read_count
from lqgap.errors import InvalidArgumentError
from lqgap.policies.bank import BankMemory, ModelBank
from lqgap.policies.policy import AbstractPolicy


class Committed(AbstractPolicy):
    """The likeliest member of a bank, the same one after step `steps`."""

    bank: ModelBank
    steps: int = eqx.field(static=True)

    def __init__(self, bank: ModelBank, steps: Any):
        if not isinstance(bank, ModelBank):
            raise InvalidArgumentError(f"bank is a {type(bank).__name__}, expected a ModelBank")
        self.bank = bank
        self.steps = read_count("steps", steps, least=0, most=1_000_000)

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.bank.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.bank.num_outputs

    @property
    def horizon(self) -> int | None:
        """That of the bank."""
        return self.bank.horizon

    def trainable(self) -> Any:
        """What is trainable in the bank."""
        nothing = jax.tree.map(lambda _: False, self)
        return eqx.tree_at(lambda p: p.bank, nothing, self.bank.trainable())

    def init(self, key: PRNGKeyArray) -> BankMemory:
        """Before the first observation."""
        return self.bank.init(key)

    def step(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, " input"]]:
        """Filter by every member, weigh while there is time, and act by the likeliest."""
        watched, inputs = self.bank.propose(memory, y, u_last)
        known = jnp.where(memory.time <= self.steps, watched.log_likelihood, memory.log_likelihood)
        watched = eqx.tree_at(lambda m: m.log_likelihood, watched, known)
        return watched, inputs[jnp.argmax(self.bank.log_posterior(watched))]
