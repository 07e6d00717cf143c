"""A bank that probes as much as is at stake: for classes whose controllers cannot tell their members apart.

With w the posterior weights of the bank, and E_kj what controller k loses a step on plant j,

    k = argmin_k sum_j w_j E_kj ,    N(k) = the members j that k stabilises, and that stabilise k
    u = sum_{j in N(k)} w_j u_j / sum_{j in N(k)} w_j  +  the probe of `policies.stake` .

Inputs of members outside of N(k) could cancel. A bank alone never learns what its inputs do not excite; this
one does, and is the bank where inputs teach enough. Trained are the bank and three numbers of the probe.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import IntLike, read_count
from lqgap.errors import InvalidArgumentError
from lqgap.policies.bank import BankMemory, ModelBank
from lqgap.policies.policy import AbstractWrapper
from lqgap.policies.stake import Probe
from lqgap.systems import LQG
from lqgap.systems.optimum import solve_members
from lqgap.systems.separation import LEAST_EXCESS, RUIN, excess_rates

CAUTION, PATIENCE = 1.4, 2.0  # before training


class ProbingMemory(eqx.Module):
    """The memory of the bank, the course of the probe and the key of its noise."""

    bank: BankMemory
    xi: Float[Array, " 2"]
    key: PRNGKeyArray


class ProbingBank(AbstractWrapper):
    """A bank of all members, with a probe where its inputs teach too little of what is at stake.

    Args:
        systems: the members as one batched LQG.
        horizon: last step of a task that ends; None for one that goes on.
        bank: of the same members, if it has been trained.
        stop: the step after which nothing learnt is worth its price any more, if the task has one; later
            steps are of a task that goes on.
        probe: "auto", or the most that may be added to an input, or to each.
    """

    bank: ModelBank
    probe: Probe
    loss: Float[Array, "controller plant"]
    is_near: Float[Array, "member other"]
    stop: Float[Array, ""]

    def __init__(
        self,
        systems: LQG,
        *,
        horizon: IntLike | None = None,
        bank: ModelBank | None = None,
        stop: IntLike | None = None,
        probe: Any = "auto",
    ):
        optima = solve_members(systems)
        self.bank = ModelBank(systems, horizon=horizon) if bank is None else bank
        if len(self.bank.A) != len(systems.A):
            raise InvalidArgumentError(f"bank is {bank!r:.40}, expected a ModelBank of the members")
        tuning = jnp.log(jnp.asarray([CAUTION - 1, PATIENCE, 1.0]))
        self.probe = eqx.tree_at(lambda p: p.tuning, Probe(systems, optima, probe=probe), tuning)
        excess = excess_rates(systems, optima)
        is_stable = np.isfinite(excess)
        self.loss = jnp.asarray(np.where(is_stable, excess, RUIN * np.max(optima.J)))
        self.is_near = jnp.asarray((is_stable & is_stable.T).astype(float))
        last = -1 if stop is None else read_count("stop", stop, least=0, most=100_000_000)
        self.stop = jnp.asarray(float(last))

    @property
    def use(self) -> float:
        """The share of pairs of members, one of them acted on, that it would probe for at even odds."""
        probe, k = self.probe, np.arange(len(self.probe.J))
        own, root = np.asarray(probe.rates)[k[:, None], k[:, None], k], np.asarray(probe.root)[:, None]
        G = own[..., 1:].reshape(*own.shape[:2], *root.shape[2:])
        G = np.swapaxes(root, -1, -2) @ G @ root
        cheapest = np.linalg.eigvalsh(G)[..., -1]
        matters = np.asarray(probe.excess) > LEAST_EXCESS * np.asarray(probe.J)
        would = np.asarray(probe.excess) * cheapest > 4 * own[..., 0]  # stake > 2 nu0 / nu1
        return float(np.sum(matters & would) / max(np.sum(matters), 1))

    @property
    def inside(self) -> ModelBank:
        """The bank."""
        return self.bank

    @property
    def needs_smoothing(self) -> bool:
        """Yes: it chooses one of several controllers."""
        return True

    def trainable(self) -> Any:
        """The trainable parts of the bank, and three numbers of the probe."""
        return self.only(lambda policy: (policy.bank, policy.probe.tuning))

    def init(self, key: PRNGKeyArray) -> ProbingMemory:
        """The memory before the first observation."""
        key_bank, key_start, key = jax.random.split(key, 3)
        return ProbingMemory(self.bank.init(key_bank), self.probe.begin(key_start), key)

    def step(
        self, memory: ProbingMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[ProbingMemory, Float[Array, " input"]]:
        """The mean of the bank over neighbours, and the probe."""
        now = memory.bank.time
        bank, inputs = self.bank.propose(memory.bank, y, u_last)
        weights = self.bank.weights(bank)
        chosen = jnp.argmin(self.loss @ weights)
        near = weights * self.is_near[chosen]
        steps_left = jnp.where(now <= self.stop, self.stop + 1 - now, jnp.inf)
        cost, direction = self.probe.plan(chosen, weights, steps_left)
        xi = self.probe.move(memory.xi, jax.random.fold_in(memory.key, now))
        u = near @ inputs / jnp.sum(near) + self.probe.input(cost, direction, xi)
        return ProbingMemory(bank, xi, memory.key), u
