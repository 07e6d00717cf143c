"""A bank that weighs what an input teaches against what it costs (dual control), one step ahead.

With w the posterior weights and u_i the members' inputs, an input u costs sum_i w_i ||u - u_i||^2_{M_i} more
than the true member's, if that is drawn from w. What is then left in doubt between two members by the next
observation is known in closed form: E sqrt(w_i' w_j') = sqrt(w_i w_j) rho_ij, with the overlap of what they
predict (Bhattacharyya's coefficient),

    rho_ij(u) = exp(-d'(S_i + S_j)^-1 d / 4) (det S_i det S_j)^1/4 / det((S_i + S_j) / 2)^1/2 ,
    d = C_i (A_i xhat_i + B_i u) - C_j (A_j xhat_j + B_j u) .

The input is the one with the least

    sum_i w_i ||u - u_i||^2_{M_i} + doubt sum_{i < j} sqrt(w_i w_j) rho_ij(u)

among the mean of the bank and steps from it along each input; once the posterior has settled, the mean. As in
`training.answer` the prior of a bank has the size of M_i in it already, so that M_i is here of one size.
Doubt among the few likeliest members counts; the others are as good as refuted.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import FloatLike, IntLike, read_positive
from lqgap.batches import in_turn
from lqgap.policies.bank import BankMemory, ModelBank
from lqgap.policies.policy import AbstractWrapper, entry_at
from lqgap.systems import LQG
from lqgap.systems.innovation import solve_normal
from lqgap.systems.optimum import solve_members

NUM_LIKELIEST = 4
STEPS = 6 * np.sinh(np.linspace(-2, 2, 61)) / np.sinh(2)  # in units of the input that an innovation calls for
DOUBT = 10.5  # in units of the mean of J: what serves a gain of unknown sign


class DualBank(AbstractWrapper):
    """A bank of all members that also probes, where it pays to know more.

    Args:
        systems: the members as one batched LQG.
        horizon: last step of a task that ends; None for one that goes on.
        doubt: what it costs not to know which of two equally likely members is true, from the next step on;
            about ten times the mean of J if left out, which training may change.
    """

    bank: ModelBank
    M: Float[Array, "member input input"]
    input_scale: Float[Array, " input"]
    log_doubt: Float[Array, ""]

    def __init__(self, systems: LQG, *, horizon: IntLike | None = None, doubt: FloatLike | None = None):
        self.bank = ModelBank(systems, horizon=horizon)
        optima = solve_members(systems)
        size = jnp.linalg.det(optima.M) ** (1 / systems.num_inputs)
        self.M = optima.M / size[:, None, None] * jnp.mean(size)
        gain = optima.K @ optima.L
        wanted = gain @ optima.S @ jnp.swapaxes(gain, 1, 2)
        self.input_scale = jnp.sqrt(jnp.mean(jnp.diagonal(wanted, axis1=1, axis2=2), axis=0))
        doubt = DOUBT * jnp.mean(optima.J) if doubt is None else read_positive("doubt", doubt)
        self.log_doubt = jnp.log(jnp.asarray(doubt))

    @property
    def inside(self) -> ModelBank:
        """The bank."""
        return self.bank

    @property
    def needs_smoothing(self) -> bool:
        """Yes: it chooses one of several inputs."""
        return True

    def trainable(self) -> Any:
        """What is trainable in the bank, and the cost of doubt."""
        return self.only(lambda policy: (policy.bank, policy.log_doubt))

    def init(self, key: PRNGKeyArray) -> BankMemory:
        """Before the first observation."""
        return self.bank.init(key)

    def step(
        self, memory: BankMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[BankMemory, Float[Array, " input"]]:
        """The best of the bank's mean and steps from it."""
        memory, inputs = self.bank.propose(memory, y, u_last)
        weights = self.bank.weights(memory)
        mean = weights @ inputs
        steps = jnp.asarray(STEPS, mean.dtype)[:, None, None] * jnp.diag(self.input_scale)[None]
        candidates = mean[None, :] + steps.reshape(-1, len(mean))
        costs = self._deviations(candidates, inputs, weights) + self._doubts(candidates, memory, weights)
        return memory, candidates[jnp.argmin(costs)]

    def _deviations(self, candidates: Array, inputs: Array, weights: Array) -> Array:
        away = candidates[:, None, :] - inputs[None, :, :]
        return jnp.einsum("k,cki,kij,ckj->c", weights, away, self.M, away)

    def _doubts(self, candidates: Array, memory: BankMemory, weights: Array) -> Array:
        """What every candidate leaves in doubt among the likeliest members."""
        bank = self.bank
        weights, likeliest = jax.lax.top_k(weights, min(NUM_LIKELIEST, len(weights)))
        A, B, C, xhat = (part[likeliest] for part in (bank.A, bank.B, bank.C, memory.xhat))
        S = entry_at(bank.S, memory.time)[likeliest]
        first, second = np.triu_indices(len(weights), 1)
        at_rest = jnp.einsum("kpi,kij,kj->kp", C, A, xhat)
        per_input = jnp.einsum("kpi,kij->kpj", C, B)
        predicted = at_rest[None] + jnp.einsum("kpj,cj->ckp", per_input, candidates)
        apart = predicted[:, first] - predicted[:, second]
        # The overlap is a quotient of densities of d / 2 under (S_i + S_j) / 2, and of 0 under S_i and S_j.
        spreads = in_turn(memory.xhat, jnp.concatenate([0.5 * (S[first] + S[second]), S]))
        places = jnp.concatenate([0.5 * apart, jnp.zeros_like(predicted)], axis=1)
        densities = jax.vmap(jax.vmap(_log_density), in_axes=(None, 0))(spreads, places)
        mixed, own = densities[:, : len(first)], densities[:, len(first) :]
        shares = jnp.sqrt(weights[first] * weights[second])
        return jnp.exp(self.log_doubt) * jnp.exp(mixed - 0.5 * (own[:, first] + own[:, second])) @ shares


def _log_density(S: Array, e: Array) -> Float[Array, ""]:
    """Of e under N(0, S), up to a constant."""
    precision_times, log_det = solve_normal(S, e)
    return -0.5 * (e @ precision_times + log_det)
