"""Identify, then control: a bank that commits itself once.

Up to step `steps` the members' likelihoods are summed as in `bank`; after it they stay unchanged, and the
controller of the likeliest member acts permanently. After random inputs, this is what an engineer does who
excites a plant, fits a model to the record and deploys the model's controller.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_count
from lqgap.policies.bank import BankMemory, ModelBank
from lqgap.policies.policy import AbstractWrapper
from lqgap.policies.probing import RandomProbe


class Committed(AbstractWrapper):
    """The likeliest member of a bank, the same one after step `steps`."""

    bank: ModelBank
    steps: int = eqx.field(static=True)

    def __init__(self, bank: ModelBank, steps: IntLike):
        self.bank = bank
        self.steps = read_count("steps", steps, least=0, most=1_000_000)

    @property
    def inside(self) -> ModelBank:
        """The bank."""
        return self.bank

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


def explore_then_commit(bank: ModelBank, steps: IntLike, *, scale: FloatLike = 1.0) -> RandomProbe:
    """Inputs drawn from N(0, scale^2 I) for `steps` steps, then the controller of the likeliest member."""
    return RandomProbe(steps, Committed(bank, steps), scale=scale)
