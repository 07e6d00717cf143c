"""Two filters side by side, and how far an input moves them apart.

Both members of a pair filter one record. Under a law whose next observation has the mean of the members',
weighted by a and 1 - a, with d what a policy adds to the weighted mean of the members' own inputs,

    y = a C_0 x^0 + (1-a) C_1 x^1 + e ,   f^i = x^i + L^i (y - C_i x^i) ,   e ~ N(0, S) ,
    u = -a K^0 f^0 - (1-a) K^1 f^1 + d ,  x^i_+ = A_i f^i + B_i u          (x^i: before y, f^i: after it) ,

the pair s = (x^0, x^1) is linear in noise and deviation, and so is what tells the members apart:

    s_+ = F s + G e + E d ,   Delta = K^1 f^1 - K^0 f^0  (what they want) ,   nu = C_1 x^1 - C_0 x^0  (expect)

a = 1 is the law of member 0; a = 1/2 is, for two members that differ in B alone, that of the plant half-way.
A gain is the largest ratio of sum ||H s + J d||^2_out to sum ||d||^2_in over s_0 = 0 and all d, by the
bounded-real recursion: it is below g if and only if all of

    N = g^2 in - J' out J - E'X_+E > 0 ,   X = F'X_+F + H' out H + T N^-1 T' ,   T = F'X_+E + H' out J .
"""

from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float, Int

from lqgap.evaluation.reference import Reference
from lqgap.linalg import symmetrize

NUM_BISECTIONS = 32  # of the logarithm of a gain
LARGEST_GAIN = 1e8


class FilterPair(eqx.Module):
    """The two filters as one linear system, at one step, driven by standard normal noise."""

    F: Float[Array, "joint joint"]
    G: Float[Array, "joint output"]
    E: Float[Array, "joint input"]
    input_difference: Float[Array, "input joint"]
    input_difference_at_once: Float[Array, "input output"]
    output_difference: Float[Array, "output joint"]


class Spread(eqx.Module):
    """Second moments at one step, without deviation: Cov(Delta), and E ||nu||^2 in a given metric."""

    input_difference: Float[Array, "input input"]
    output_difference: Float[Array, ""]


def join(first: Reference, second: Reference, share: float) -> FilterPair:
    """The filters at every step, under the law that gives the first member this share (one: its own law)."""
    shares = (share, 1 - share)
    states = len(first.A)

    def at(gains: tuple[Array, ...]) -> FilterPair:
        K0, L0, root, K1, L1, _ = gains
        identity = jnp.eye(states)
        select = (jnp.pad(identity, ((0, 0), (0, states))), jnp.pad(identity, ((0, 0), (states, 0))))
        outputs = (first.C @ select[0], second.C @ select[1])
        mean = shares[0] * outputs[0] + shares[1] * outputs[1]
        after = [x + L @ (mean - y) for x, L, y in zip(select, (L0, L1), outputs, strict=True)]
        wants = (K0 @ after[0], K1 @ after[1])
        wants_noise = (K0 @ L0 @ root, K1 @ L1 @ root)
        u = -shares[0] * wants[0] - shares[1] * wants[1]
        u_noise = -shares[0] * wants_noise[0] - shares[1] * wants_noise[1]
        return FilterPair(
            F=jnp.concatenate([first.A @ after[0] + first.B @ u, second.A @ after[1] + second.B @ u]),
            G=jnp.concatenate(
                [first.A @ L0 @ root + first.B @ u_noise, second.A @ L1 @ root + second.B @ u_noise]
            ),
            E=jnp.concatenate([first.B, second.B]),
            input_difference=wants[1] - wants[0],
            input_difference_at_once=wants_noise[1] - wants_noise[0],
            output_difference=outputs[1] - outputs[0],
        )

    return jax.vmap(at)((first.K, first.L, first.S_root, second.K, second.L, second.S_root))


def spread(filters: FilterPair, metric: Float[Array, "time output output"]) -> Spread:
    """What noise alone makes of the differences."""

    def step(Pi: Array, now: tuple[FilterPair, Array]) -> tuple[Array, Spread]:
        at, weight = now
        moments = Spread(
            input_difference=symmetrize(
                at.input_difference @ Pi @ at.input_difference.T
                + at.input_difference_at_once @ at.input_difference_at_once.T
            ),
            output_difference=jnp.sum(weight * (at.output_difference @ Pi @ at.output_difference.T)),
        )
        return symmetrize(at.F @ Pi @ at.F.T + at.G @ at.G.T), moments

    return jax.lax.scan(step, jnp.zeros_like(filters.F[0]), (filters, metric))[1]


def gain_of_deviation(
    filters: FilterPair,
    seen: Float[Array, "time seen joint"],
    at_once: Float[Array, "time seen input"],
    *,
    metric_in: Float[Array, "time input input"],
    metric_out: Float[Array, "time seen seen"],
) -> Float[Array, ""]:
    """An upper bound, tight to seven digits, of the gain from d to H s + J d; infinite if beyond 1e8."""

    def step(X: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        F, E, H, J, limit, weight = now
        rest = symmetrize(limit - J.T @ weight @ J - E.T @ X @ E)
        cross = F.T @ X @ E + H.T @ weight @ J
        factor = jnp.linalg.cholesky(rest)  # NaN unless positive definite, and from then on
        half = jsl.solve_triangular(factor, cross.T, lower=True)
        X = symmetrize(F.T @ X @ F + H.T @ weight @ H + half.T @ half)
        return X, jnp.sum(factor)

    def is_above(gain: Array) -> Array:
        record = (filters.F, filters.E, seen, at_once, gain**2 * metric_in, metric_out)
        X, factors = jax.lax.scan(step, jnp.zeros_like(filters.F[0]), record, reverse=True)
        return jnp.all(jnp.isfinite(factors)) & jnp.all(jnp.isfinite(X))

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        above = is_above(jnp.exp(middle))
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    ends = (jnp.log(jnp.asarray(1 / LARGEST_GAIN)), jnp.log(jnp.asarray(LARGEST_GAIN)))
    gain = jnp.exp(jax.lax.fori_loop(0, NUM_BISECTIONS, halve, ends)[1])
    # Nothing above was feasible if the upper end never moved.
    return jnp.where(gain < 0.99 * LARGEST_GAIN, gain, jnp.inf)


@partial(jax.jit, static_argnames=("of", "share", "direct"))
def gains_of_prefixes(
    pairs: tuple[Reference, Reference],
    metrics: tuple[Float[Array, "pair time input input"], Float[Array, "pair time seen seen"]],
    lengths: Int[Array, " prefix"],
    *,
    of: Literal["input_difference", "output_difference"],
    share: float,
    direct: float = 0.0,
) -> Float[Array, "pair prefix"]:
    """Of many pairs the gain from d to `direct` d plus a difference, with sums over the first steps only."""

    def of_pair(first: Reference, second: Reference, metric_in: Array, metric_out: Array) -> Array:
        filters = join(first, second, share)
        seen, inputs = getattr(filters, of), filters.E.shape[2]
        at_once = jnp.broadcast_to(direct * jnp.eye(seen.shape[1], inputs), (*seen.shape[:2], inputs))

        def of_prefix(length: Array) -> Array:
            is_counted = jnp.arange(len(seen)) < length
            counted = jnp.where(is_counted[:, None, None], metric_out, 0)
            return gain_of_deviation(filters, seen, at_once, metric_in=metric_in, metric_out=counted)

        return jax.vmap(of_prefix)(lengths)

    return jax.vmap(of_pair)(*pairs, *metrics)
