"""How strongly to excite a plant: the smallest random inputs that identify it, whichever member is true.

To tell members apart: under u ~ N(0, sigma^2 diag(s)) and member i, the log-likelihood of i over j grows by

    rate_ij = 1/2 E ||yhat_j - yhat_i||^2_{S_j^-1} + 1/2 [ tr(S_j^-1 S_i) - p + log det S_j / det S_i ]

in a step, once the filters have settled. The pair of filters is a linear system driven by the innovations of
i and by u, so that the rate is passive + active sigma^2, by one Lyapunov equation. Over T steps the ratio is
about N(D, 2 D) with D = T rate. Member j of N is refuted with probability 1 - delta if D - z (2 D)^1/2 is
log(N / delta), z the normal quantile of 1 - delta: for

    D = ( z / 2^1/2 + (z^2 / 2 + log(N / delta))^1/2 )^2 .

A step of probing costs sigma^2 s . diag(R + B'XB) more than zero input, X = A'XA + C'QC. The shares s, one in
the mean, let every input cost the same, in the mean over the members.

To identify gains: if column j of B is known up to a factor, T steps have the Fisher information

    T sigma_j^2 (B'XB)_jj ,    X = Abar'X Abar + C'S^-1 C ,

on the factor, whose inverse root is the relative standard error of the gain.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from lqgap.arguments import FloatLike, IntLike, read_count, read_positive, read_probability
from lqgap.errors import InvalidArgumentError
from lqgap.linalg import log_det_psd, solve_psd
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.simulators import Finite
from lqgap.systems import LQG, Optimum, predictor_matrix

LEAST_DIFFERENCE = 1e-12  # of the squared responses to inputs that tells a pair apart, relative to themselves


class Probing(eqx.Module):
    """Amplitudes of white inputs, and what they do."""

    sigma_u: Float[np.ndarray, " input"]  # 0 if the noise alone tells all members apart
    pair: tuple[int, int] = eqx.field(static=True)  # (truth, other): the two that are hardest to tell apart
    needed: float  # mean log-likelihood ratio that refutes, D
    passive: Float[np.ndarray, "member member"]  # growth of log-likelihood ratios, row over column, at u = 0
    active: Float[np.ndarray, "member member"]  # the same for inputs of unit variance, in the mean of them
    cost: Float[np.ndarray, " member"]  # of a step of probing, above that of zero input

    def rates(self) -> Float[np.ndarray, "member member"]:
        """Growth of log-likelihood ratios in a step at the chosen amplitude."""
        return self.passive + self.active * np.mean(self.sigma_u**2)


def choose_probing(members: Finite, *, num_steps: IntLike, delta: float = 0.05) -> Probing:
    """The smallest amplitude with which a record of `num_steps` leaves the truth alone in the likelihood set.

    It may be none at all, where noise alone tells members apart; a regression needs `probing_for_gains`.

    Args:
        members: those that are to be told apart; for a family, a grid as coarse as control allows.
        delta: probability of failing on the hardest pair, and of the likelihood set.
    """
    members, num_steps = _read(members, num_steps)
    delta = read_probability("delta", delta)
    if len(members) < 2:
        raise InvalidArgumentError("members has one member only: there is nothing to tell apart")
    optima, costs = members.optima(), np.asarray(_input_costs(members.systems))
    shares = 1 / np.mean(costs, axis=0)
    shares = shares / np.mean(shares)
    passive, active = (np.asarray(rate) for rate in _rates(optima, members.systems, jnp.asarray(shares)))
    z = float(scipy.special.ndtri(1 - delta))
    needed = (z / np.sqrt(2) + np.sqrt(z**2 / 2 + np.log(len(members) / delta))) ** 2
    missing = np.maximum(needed / num_steps - passive, 0)
    np.fill_diagonal(missing, 0)
    is_hidden = (missing > 0) & (
        active
        <= LEAST_DIFFERENCE * np.asarray(_responses(optima, members.systems, jnp.asarray(shares)))[:, None]
    )
    if np.any(is_hidden):
        i, j = np.argwhere(is_hidden)[0]
        raise InvalidArgumentError(
            f"members {i} and {j} ({members.describe(int(i))}; {members.describe(int(j))}) respond to inputs "
            f"in the same way, and noise does not tell them apart in {num_steps} steps: drop one of them"
        )
    variances = np.divide(missing, active, out=np.zeros_like(missing), where=missing > 0)
    variance = float(np.max(variances))
    rates = passive + active * variance + np.where(np.eye(len(members)), np.inf, 0)
    i, j = np.unravel_index(np.argmin(rates), rates.shape)
    cost = variance * costs @ shares
    return Probing(np.sqrt(variance * shares), (int(i), int(j)), float(needed), passive, active, cost)


def probing_for_gains(
    members: Finite, *, num_steps: IntLike, error: FloatLike = 0.1
) -> Float[np.ndarray, " input"]:
    """The smallest amplitude of every input with which a record of `num_steps` identifies its gain.

    Args:
        error: relative standard error of the gain, for the worst member.
    """
    members, num_steps = _read(members, num_steps)
    error = read_positive("error", error)
    information = np.asarray(_gain_information(members.optima(), members.systems))
    if np.any(information == 0):
        index, column = np.argwhere(information == 0)[0]
        raise InvalidArgumentError(
            f"input {column} of member {index} ({members.describe(int(index))}) has no effect on its outputs"
        )
    return 1 / (error * np.sqrt(num_steps * np.min(information, axis=0)))


def _read(members: Any, num_steps: Any) -> tuple[Finite, int]:
    members = Finite.of(members)
    radii = np.max(np.abs(np.linalg.eigvals(np.asarray(members.systems.A))), axis=1)
    if np.any(radii >= 1):
        index = int(np.argmax(radii))
        raise InvalidArgumentError(
            f"member {index} ({members.describe(index)}) has an unstable open loop (spectral radius "
            f"{radii[index]:.6g}): random inputs alone would let it diverge; probe in a closed loop, as "
            f"lqgap.policies.DualBank does"
        )
    return members, read_count("num_steps", num_steps, least=1, most=10_000_000)


@jax.jit
def _rates(optima: Optimum, systems: LQG, shares: Array) -> tuple[Array, Array]:
    def of_truth(i: tuple[Optimum, LQG]) -> tuple[Array, Array]:
        return jax.vmap(lambda optimum, plant: _rate(*i, optimum, plant, shares))(optima, systems)

    return jax.lax.map(of_truth, (optima, systems))


def _rate(truth: Optimum, plant: LQG, other: Optimum, model: LQG, shares: Array) -> tuple[Array, Array]:
    """The passive and the active part for one pair."""
    n = len(plant.A)
    # The predictions of both filters, driven by the innovation e of the truth and by u.
    step = jnp.block([[plant.A, jnp.zeros((n, n))], [other.F @ plant.C, predictor_matrix(other, model)]])
    by_e = jnp.concatenate([truth.F, other.F])
    by_u = jnp.concatenate([plant.B, model.B])
    nu = jnp.concatenate([-plant.C, model.C], axis=1)
    weight = nu.T @ solve_psd(other.S, nu)
    worth = lyapunov_sum(step.T, weight)  # what a unit of drive adds to the sum of all ||nu||^2 to come
    relative = jnp.trace(solve_psd(other.S, truth.S)) - len(plant.C)
    noise = relative + log_det_psd(other.S) - log_det_psd(truth.S)
    passive = 0.5 * (jnp.trace(by_e.T @ worth @ by_e @ truth.S) + noise)
    return passive, 0.5 * shares @ jnp.diagonal(by_u.T @ worth @ by_u)


@jax.jit
def _responses(optima: Optimum, systems: LQG, shares: Array) -> Array:
    """The sum of squared outputs after a unit of input, in units of the innovation."""

    def of_member(optimum: Optimum, plant: LQG) -> Array:
        worth = lyapunov_sum(plant.A.T, plant.C.T @ solve_psd(optimum.S, plant.C))
        return shares @ jnp.diagonal(plant.B.T @ worth @ plant.B)

    return jax.vmap(of_member)(optima, systems)


@jax.jit
def _gain_information(optima: Optimum, systems: LQG) -> Array:
    """Of every member and input, in a step of unit variance."""

    def of_member(optimum: Optimum, plant: LQG) -> Array:
        Abar = predictor_matrix(optimum, plant)
        worth = lyapunov_sum(Abar.T, plant.C.T @ solve_psd(optimum.S, plant.C))
        return jnp.diagonal(plant.B.T @ worth @ plant.B)

    return jax.vmap(of_member)(optima, systems)


@jax.jit
def _input_costs(systems: LQG) -> Array:
    """What unit variance of each input adds to the cost of a step, for every member."""

    def of_member(plant: LQG) -> Array:
        X = lyapunov_sum(plant.A.T, plant.state_weight)
        return jnp.diagonal(plant.R + plant.B.T @ X @ plant.B)

    return jax.vmap(of_member)(systems)
