"""What a bank of the members answers to an adversary who draws one of them: a prior, and nothing to learn.

If member i is true with probability w_i and would have u_i as input, the input whose excess is least at a
step,

    argmin_u  sum_i w_i || u - u_i ||^2_{M_i} = (sum_i w_i M_i)^-1 sum_i w_i M_i u_i ,

is the mean of a bank whose prior is q_i M_i in place of the adversary's mixture q_i (M_i a number; if it is a
matrix, its size det(M_i)^{1/inputs} stands for it). This forgets what an input teaches and where it leaves
the state; on plants that noise excites anyway, derivatives of richer policies find little more. And the
mixture climbs what the answer to it loses,

    D(q) = sum_i q_i gap_i(answer(q)) ,     log q_i <- log q_i + rate (gap_i / D(q) - 1) ,

whose derivative by q_i is gap_i if the answer is the best one: a search for the largest of a concave function
in place of a game, which needs no derivatives of rollouts and does not go round in circles.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lqgap.policies import AbstractPolicy, DualBank, ModelBank, ProbingBank
from lqgap.systems import LQG
from lqgap.systems.natural import naturalize
from lqgap.systems.optimum import solve_members

RATE, SLOWER = 1.0, 20  # of the first update, and after how many updates it is less by the root of two
LARGEST = 2.0  # of the part by which a gap is above the mean: more is a rollout of bad luck
LEAST = -12.0  # logarithm of a weight: a member that is left out comes back within a few updates


def answers(policy: AbstractPolicy, systems: LQG) -> bool:
    """Whether it is a bank, mixed by weights, of these plants and in this order."""
    bank = _bank_of(policy)
    if not isinstance(bank, ModelBank):
        return False
    if bank.mode != "mixture" or len(bank.A) != len(systems.A) or len(bank.A) == 1:
        return False
    natural = naturalize(systems)
    return all(
        own.shape == other.shape and np.allclose(own, other, rtol=1e-6, atol=1e-9)
        for own, other in ((bank.A, natural.A), (bank.B, natural.B), (bank.C, natural.C))
    )


def grow(bank: ModelBank, systems: LQG, weights: Float[np.ndarray, " member"]) -> ModelBank:
    """The answer of the bank of these plants to a mixture of them; the first are those of the bank so far."""
    grown = bank.of(systems, horizon=bank.horizon)
    if len(bank.A) <= len(grown.A):
        trained = (grown.shaping.at[: len(bank.A)].set(bank.shaping), bank.log_temperature)
        grown = eqx.tree_at(lambda b: (b.shaping, b.log_temperature), grown, trained)
    return set_prior(grown, jnp.log(jnp.asarray(weights)) + tilt_of(systems))


def tilt_of(systems: LQG) -> Float[Array, " member"]:
    """The logarithm of what a deviation of the input costs on each member, on average over inputs."""
    return jnp.linalg.slogdet(solve_members(systems).M)[1] / systems.num_inputs


def climb(
    log_weights: Float[Array, " member"], gaps: Float[Array, " member"], step: Int[Array, ""]
) -> Float[Array, " member"]:
    """The adversary's mixture after one more look at the gaps."""
    rate = RATE / jnp.sqrt(1 + step / SLOWER)
    above = gaps / jnp.maximum(jax.nn.softmax(log_weights) @ gaps, 1e-30) - 1
    moved = log_weights + rate.astype(gaps.dtype) * jnp.clip(above, -LARGEST, LARGEST)
    return jnp.maximum(moved - jax.nn.logsumexp(moved), LEAST)


def set_prior(parameters: Any, log_prior: Float[Array, " member"]) -> Any:
    """The parameters of a bank, with another prior; the mean of its logarithm is zero."""
    where = lambda p: _bank_of(p).log_prior  # noqa: E731
    return eqx.tree_at(where, parameters, (log_prior - jnp.mean(log_prior)).astype(where(parameters).dtype))


def _bank_of(policy: Any) -> Any:
    return policy.bank if isinstance(policy, DualBank | ProbingBank) else policy
