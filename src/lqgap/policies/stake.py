"""Probing as much as is at stake: what a policy over a class adds to an input that teaches it too little.

A member k is acted on, and w are the posterior weights of all members; `systems.separation` has the excess E,
the free information D and the gain G of a probe. Members whose loop with controller k is unstable show by
themselves, and are left out.

    q_j = w_j E_kj ,    stake = sum_j q_j               the excess of a step in the mean
    nu0 = sum_ij w_i D^k_ij q_j / stake                 nats a step that come for free
    v = argmax v'G v  with  v'M_k v = 1 ,               G = sum_ij w_i G^k_ij q_j / stake ,   nu1 = v'G v
    s = (stake - caution nu0 / nu1)_+ / (caution - 1)   what the probe costs a step
    u = ubar + s^1/2 v xi                               xi of variance one, with a peak at one frequency

With caution 2, s has the least (stake + s)^2 / (nu0 + s nu1): information-directed sampling (Russo and Van
Roy 2014), with the size of a probe in place of an action. It learns until nothing is at stake, and knows no
horizon. A probe brings at most one nat and costs at most twice the optimal cost of a step. In a task that
ends it probes only while that is worth it: stake (steps left) nu1 >= patience. The frequency is the one at
which it costs least to tell apart the members that controllers do not separate.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.policies.policy import require_one_of
from lqgap.systems import LQG, Optimum
from lqgap.systems.separation import excess_of, separate

COLOURS = 0.9 * np.exp(1j * np.linspace(0, np.pi, 9))  # that a probe may have: peaks at nine frequencies
MOST_WEIGHED = 32  # members that information is weighed of: the heaviest, and those on which most is lost
MOST_MEMBERS = 128  # with rates of their own; of more, each counts as the nearest of so many
MOST_TRIED = 8  # members that the colour is chosen by
ALIKE = 0.05  # nats a step: members that come apart by themselves need no probe
MOST_NATS, MOST_COST = 1.0, 2.0  # of a probe in one step; the second in units of J
SQUARINGS = 5  # of the matrix whose main direction is wanted
LEAST_GAIN, TINY = 1e-12, 1e-30


def read_probe(probe: Any) -> str | tuple[float, ...]:
    """Whether to probe, "auto" or "off", or the most that may be added to the inputs, or to each."""
    if isinstance(probe, str):
        require_one_of("probe", probe, ("auto", "off"))
        return probe
    sizes = np.asarray(probe) if isinstance(probe, float | int | Sequence) else np.empty(0)
    if sizes.ndim > 1 or not sizes.size or sizes.dtype.kind not in "if" or not np.all(sizes >= 0):
        raise InvalidArgumentError(
            f"probe is {probe!r}, expected 'auto', 'off', or the most that may be added to an input, a number"
        )
    return tuple(np.ravel(sizes).tolist())


class Probe(eqx.Module):
    """The size and direction of a probe, at every belief.

    Args:
        probe: "auto", or the most that may be added to an input, or to each.
    """

    excess: Float[Array, "controller plant"]  # zero in place of infinity
    rates: Float[Array, "controller plant other rate"]  # D, and G row by row
    nearest: Int[Array, " member"]  # the row of each member in both
    root: Float[Array, "controller input input"]  # M^-1/2
    turn: Float[Array, "2 2"]  # of xi and its companion, in a step
    J: Float[Array, " member"]
    largest: Float[Array, " input"]  # that is added to an input
    tuning: Float[Array, " 3"]  # the logarithms of caution - 1, patience and scale

    def __init__(self, systems: LQG, optima: Optimum, *, probe: Any = "auto"):
        colour = choose_colour(systems, optima)
        systems, optima, self.nearest = _representatives(systems, optima)
        found = separate(systems, optima, colour=colour)
        self.turn = jnp.asarray([[colour.real, -colour.imag], [colour.imag, colour.real]])
        self.excess = jnp.asarray(np.where(np.isfinite(found.excess), found.excess, 0.0))
        gain = found.gain.reshape(*found.information.shape, -1)
        self.rates = jnp.asarray(np.concatenate([found.information[..., None], gain], axis=-1))
        self.root = jnp.asarray(np.swapaxes(np.linalg.inv(np.linalg.cholesky(optima.M)), 1, 2))
        self.J = optima.J
        self.largest = _largest(read_probe(probe), systems.num_inputs)
        self.tuning = jnp.zeros(3)

    def begin(self, key: PRNGKeyArray) -> Float[Array, " 2"]:
        """xi and its companion before the first step."""
        return jax.random.normal(key, (2,)).astype(self.J.dtype)

    def move(self, xi: Float[Array, " 2"], key: PRNGKeyArray) -> Float[Array, " 2"]:
        """xi and its companion at the next step."""
        noise = jax.random.normal(key, (2,)).astype(self.J.dtype)
        return self.turn @ xi + jnp.sqrt(1 - jnp.linalg.det(self.turn)) * noise

    def plan(
        self, chosen: Int[Array, ""], weights: Float[Array, " member"], steps_left: Array | float = jnp.inf
    ) -> tuple[Float[Array, ""], Float[Array, " input"]]:
        """What the probe costs a step, s, and its direction v."""
        chosen = self.nearest[chosen]
        if len(self.nearest) > len(self.J):
            weights = jax.ops.segment_sum(weights, self.nearest, num_segments=len(self.J))
        lost = weights * self.excess[chosen]
        stake = jnp.sum(lost)
        rates, root = self._mean_rates(chosen, weights, lost), self.root[chosen]
        free, G = rates[0], root.T @ rates[1:].reshape(root.shape) @ root
        direction = _main_direction(G)
        gain = jnp.maximum(direction @ G @ direction, TINY)
        ease, patience, scale = jnp.exp(self.tuning)  # ease is caution - 1
        cost = scale * (stake - (1 + ease) * free / gain) / ease
        cost = jnp.clip(cost, 0.0, jnp.minimum(MOST_NATS / gain, MOST_COST * self.J[chosen]))
        is_worth = (gain > TINY) & (stake * steps_left * gain >= patience)
        return jnp.where(is_worth, cost, 0.0), root @ direction

    def _mean_rates(
        self, chosen: Int[Array, ""], weights: Float[Array, " member"], lost: Float[Array, " member"]
    ) -> Float[Array, " rate"]:
        """D and G in the mean over pairs of members, of which the second counts by what is lost on it."""
        rates = self.rates[chosen]
        if len(weights) > MOST_WEIGHED:
            # Apart, since the heaviest may all be alike, with nothing to lose.
            weights, heaviest = jax.lax.top_k(weights, MOST_WEIGHED)
            lost, dearest = jax.lax.top_k(lost, MOST_WEIGHED)
            rates = self.rates[chosen, heaviest[:, None], dearest[None, :]]
        sums = jnp.einsum("i,ijr,j->r", weights, rates, lost)
        return sums / jnp.maximum(jnp.sum(weights) * jnp.sum(lost), TINY)

    def input(
        self, cost: Float[Array, ""], direction: Float[Array, " input"], xi: Float[Array, " 2"]
    ) -> Float[Array, " input"]:
        """What is added to the input."""
        size = jnp.where(cost > 0, jnp.sqrt(jnp.where(cost > 0, cost, 1.0)), 0.0)  # with a derivative at zero
        return jnp.clip(size * xi[0] * direction, -self.largest, self.largest)


def choose_colour(systems: LQG, optima: Optimum) -> complex:
    """The colour by which it costs least to tell apart what is at stake, among some members."""
    some = np.unique(np.linspace(0, len(optima.J) - 1, MOST_TRIED).astype(int))
    systems, optima = take((systems, optima), some)
    root = np.linalg.inv(np.linalg.cholesky(optima.M))[:, None, None]

    def cost(colour: complex) -> float:
        found = separate(systems, optima, colour=colour)
        gain = np.linalg.eigvalsh(root @ found.gain @ np.swapaxes(root, -1, -2))[..., -1]
        stake = np.where(np.isfinite(found.excess), found.excess, 0.0)[:, None, :]
        return float(
            np.sum(stake * (found.information < ALIKE) / np.maximum(gain, LEAST_GAIN / np.max(optima.J)))
        )

    return complex(min(COLOURS, key=cost))


def _representatives(systems: LQG, optima: Optimum) -> tuple[LQG, Optimum, Int[Array, " member"]]:
    """Some members, and for each of all the one whose controller loses least on it."""
    count = len(optima.J)
    if count <= MOST_MEMBERS:
        return systems, optima, jnp.arange(count)
    some, everyone = np.linspace(0, count - 1, MOST_MEMBERS).astype(int), np.arange(count)
    lost = [excess_of(systems, optima, np.full(count, k), everyone) for k in some]
    few = take((systems, optima), some)
    return few[0], few[1], jnp.asarray(np.argmin(lost, axis=0))


def _largest(probe: str | tuple[float, ...], num_inputs: int) -> Float[Array, " input"]:
    sizes = np.asarray(np.inf if isinstance(probe, str) else probe, dtype=float).ravel()
    if len(sizes) not in (1, num_inputs):
        raise InvalidArgumentError(
            f"probe has {len(sizes)} numbers, expected one, or one for each of {num_inputs} inputs"
        )
    return jnp.broadcast_to(jnp.asarray(sizes), num_inputs)


def _main_direction(G: Float[Array, "input input"]) -> Float[Array, " input"]:
    """The eigenvector of the largest eigenvalue; its largest entry is positive, so that it moves smoothly."""
    if len(G) == 1:
        return jnp.ones_like(G[0])
    for _ in range(SQUARINGS):
        G = G / jnp.maximum(jnp.trace(G), TINY)
        G = G @ G
    column = G[:, jnp.argmax(jnp.diagonal(G))]
    size = jnp.linalg.norm(column)
    column = column * jnp.sign(column[jnp.argmax(jnp.abs(column))])
    return jnp.where(size > 0, column / jnp.maximum(size, TINY), 0.0)
