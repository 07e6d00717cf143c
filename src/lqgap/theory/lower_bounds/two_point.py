"""Two members that cannot be told apart fast enough: a lower bound for every policy, any pair, any horizon.

Under member 0 let u = -K^0 xhat^0 + d, so that g = Gap_0 = E_0 sum ||d||^2_{M^0}, and let Delta and nu be
what the members want and expect differently (see `filter_pair`, with the law of member 0). For any
levels B_h, with Delta^0 and nu^0 those without deviation, om_h the largest eigenvalue of Cov(Delta^0_h) in
the metric M^1,

    Gap_1 >= E_1 sum_h min(||d + Delta||^2_{M^1}, B_h) >= E_0 sum_h min(..) - sum_h B_h tv_h
          >= [ (sum_h E min(om_h Z^2, B_h))^1/2 - c_1 g^1/2 ]_+^2 - sum_h B_h tv_h(g) =: LB(g) ,
    tv = min( (KL/2)^1/2, (1 - e^-KL)^1/2 ) ,
    KL_h(g) = 1/2 [ (sum_{s<=h} E ||nu^0||^2_{1/S^1})^1/2 + c_2 g^1/2 ]^2
              + 1/2 sum_{s<=h} [ tr(S^0/S^1) - p + log det S^1 / det S^0 ] ,

c_1 and c_2 the gains from d to d + Delta and to nu. LB decreases, so max(Gap_0, Gap_1) >= g* at its fixed
point LB(g*) = g*. Terms are non-negative: the sums may stop after any number of steps. Levels are
B_h = b om_h; the best b and the best number of steps are taken.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float, Int

from lqgap.batches import chunks, take
from lqgap.evaluation.reference import Reference
from lqgap.theory.lower_bounds.bound import AbstractLowerBound, Found, Members, PairBound
from lqgap.theory.lower_bounds.filter_pair import gains_of_prefixes, join, spread

LEVELS = np.geomspace(0.05, 30, 25)  # b: how many variances of Delta a step may count for
NUM_BISECTIONS = 50
PAIRS_AT_A_TIME = 32


class TwoPoint(AbstractLowerBound):
    """Two members that take time to be told apart, the best of all pairs."""

    kind: ClassVar[str] = "two-point"

    def applies(self, members: Members) -> bool:
        """Always: any two members are a pair."""
        return len(members) > 1

    def bound(self, members: Members) -> Found:
        """The best pair, either of its members first."""
        pairs = np.concatenate([members.pairs, members.pairs[:, ::-1]])
        return two_point_bound(members.references, pairs).best(pairs, num_members=len(members))


class Figures(eqx.Module):
    """Of one pair: what its bound is made of."""

    wanted: Float[Array, " time"]  # om
    information: Float[Array, " time"]  # sum of E ||nu^0||^2 so far
    covariance: Float[Array, " time"]  # the part of the divergence that no input changes, so far


def two_point_bound(references: Reference, pairs: Int[np.ndarray, "pair two"]) -> PairBound:
    """The bound of ordered pairs of members (either may be member 0); zero for pairs that cannot be the best.

    With the gains replaced by numbers below them the bound is larger and cheap to have: what is not larger
    then than the best bound so far needs no gains.
    """
    lengths = prefix_lengths(references.K.shape[1])
    hopes = []
    for first, second in take_pairs(references, pairs):
        least = jnp.repeat(_least_gain(first, second)[:, None], len(lengths), axis=1)
        table = np.asarray(
            _fixed_points(
                _figures(first, second, precision_of(second)), least, jnp.zeros_like(least), lengths
            )
        )
        hopes.append(np.max(np.nan_to_num(table, nan=np.inf), axis=1))
    hope = np.concatenate(hopes)[: len(pairs)]
    order = np.argsort(-hope)
    values, num_steps = np.zeros(len(pairs)), np.ones(len(pairs), dtype=int)
    start = 0
    while start < len(pairs) and hope[order[start]] > np.max(values):
        rows = order[start : start + PAIRS_AT_A_TIME]
        start += len(rows)
        table = np.concatenate([_table(*of, lengths) for of in take_pairs(references, pairs[rows])])
        values[rows] = np.max(table[: len(rows)], axis=1)
        num_steps[rows] = lengths[np.argmax(table[: len(rows)], axis=1)]
    return PairBound(values, num_steps)


def prefix_lengths(num_steps: int) -> Int[np.ndarray, " prefix"]:
    """Numbers of steps at which sums may stop: one, two, four and so on, and all."""
    return np.append(2 ** np.arange(int(np.ceil(np.log2(num_steps)))), num_steps)


def take_pairs(
    references: Reference, pairs: Int[np.ndarray, "pair two"]
) -> Iterator[tuple[Reference, Reference]]:
    """The members of some pairs at a time, the last ones repeated: memory and shapes stay the same."""
    for rows in chunks(len(pairs), min(len(pairs), PAIRS_AT_A_TIME)):
        first, second = (take(references, row) for row in pairs[rows].T)
        yield first, second


def largest_eigenvalue(
    X: Float[Array, "time n n"], metric: Float[Array, "time n n"]
) -> Float[Array, " time"]:
    """Of X in a metric: of metric^1/2 X metric^1/2."""
    roots = jnp.linalg.cholesky(metric)
    return jnp.linalg.eigvalsh(jnp.swapaxes(roots, 1, 2) @ X @ roots)[:, -1]


def truncated_variance(level: Any) -> Any:
    """E min(Z^2, level) of a standard normal number."""
    root = np.sqrt(level)
    inside = scipy.special.erf(root / np.sqrt(2))
    return inside - 2 * root * np.exp(-0.5 * level) / np.sqrt(2 * np.pi) + level * (1 - inside)


@jax.jit
@jax.vmap
def precision_of(reference: Reference) -> Float[Array, "time output output"]:
    """1 / S at every step, of many references."""
    inverse = jnp.linalg.inv(reference.S_root)
    return jnp.swapaxes(inverse, 1, 2) @ inverse


def _table(first: Reference, second: Reference, lengths: np.ndarray) -> np.ndarray:
    """g* of every pair and prefix; what left double precision bounds nothing."""
    pair, share = (first, second), 1.0
    wanted, seen = (first.M, second.M), (first.M, precision_of(second))
    gains = (
        gains_of_prefixes(pair, wanted, lengths, of="input_difference", share=share, direct=1.0),
        gains_of_prefixes(pair, seen, lengths, of="output_difference", share=share),
    )
    table = np.asarray(_fixed_points(_figures(first, second, seen[1]), *gains, lengths))
    return np.nan_to_num(table, nan=0.0, posinf=0.0)


@jax.jit
@jax.vmap
def _least_gain(first: Reference, second: Reference) -> Array:
    """A number below c_1: the gain of a deviation at a last step, which nothing answers."""
    relative = jnp.linalg.solve(jnp.linalg.cholesky(first.M), jnp.linalg.cholesky(second.M))
    return jnp.sqrt(jnp.min(jnp.sum(relative**2, axis=(1, 2)) / relative.shape[1]))


@jax.jit
@jax.vmap
def _figures(first: Reference, second: Reference, precision: Array) -> Figures:
    moments = spread(join(first, second, 1.0), precision)
    relative = jnp.linalg.solve(second.S_root, first.S_root)
    log_ratio = 2 * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(relative, axis1=1, axis2=2))), axis=1)
    of_step = 0.5 * (jnp.sum(relative**2, axis=(1, 2)) - relative.shape[1] - log_ratio)
    return Figures(
        wanted=largest_eigenvalue(moments.input_difference, second.M),
        information=jnp.cumsum(jnp.maximum(moments.output_difference, 0)),
        covariance=jnp.cumsum(jnp.maximum(of_step, 0)),
    )


@jax.jit
def _fixed_points(figures: Figures, c1: Array, c2: Array, lengths: Array) -> Array:
    """g* of every pair and prefix, at the best level."""
    times = jnp.arange(figures.wanted.shape[1])

    def of_prefix(figures: Figures, c1: Array, c2: Array, length: Array, cut: tuple[Array, Array]) -> Array:
        level, truncated = cut
        wanted = jnp.where(times < length, figures.wanted, 0)
        undisturbed = jnp.sqrt(truncated * jnp.sum(wanted))

        def bound(g: Array) -> Array:
            moved = jnp.sqrt(figures.information) + c2 * jnp.sqrt(g)
            divergence = 0.5 * moved**2 + figures.covariance
            variation = jnp.minimum(jnp.sqrt(0.5 * divergence), jnp.sqrt(-jnp.expm1(-divergence)))
            left = jnp.maximum(undisturbed - c1 * jnp.sqrt(g), 0)
            return left**2 - level * jnp.sum(wanted * variation)

        def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = 0.5 * (low + high)
            below = bound(middle) >= middle
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        zero = jnp.zeros_like(undisturbed)
        return jax.lax.fori_loop(0, NUM_BISECTIONS, halve, (zero, undisturbed**2))[0]

    of_prefixes = jax.vmap(of_prefix, in_axes=(None, 0, 0, 0, None))
    of_pairs = jax.vmap(of_prefixes, in_axes=(0, 0, 0, None, None))
    levels = (jnp.asarray(LEVELS), jnp.asarray(truncated_variance(LEVELS)))
    at_levels = jax.lax.map(lambda level: of_pairs(figures, c1, c2, lengths, level), levels)
    return jnp.max(at_levels, axis=0)
