"""Moments of a clipped standard normal variable.

With x ~ N(0, 1), chi = clip(x, -level, level), chi' = 1{|x| < level} and third = chi (x^2 - 1) - chi' x:

    square   = E chi^2                product = E chi x
    own      = E third^2              own_square = E chi third        own_product = E x third
    stein    = E (chi x - chi')^2     even    = E (x^2 - 1)(chi x - chi')
    cubic    = E chi x (x^2 - 1)      fourth  = E chi^2 x^2 - E chi^2 - 2 (E chi x)^2

`fourth` is the fourth cumulant of (chi, chi, x, x). All integrands are smooth on both sides of the level, so
that Gauss-Legendre rules there are exact to rounding.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

TAIL, NODES = 12.0, 80  # beyond level + TAIL nothing is left in double precision


class ClippedNormal(eqx.Module):
    """The moments above, for one level."""

    level: Float[Array, ""]
    square: Float[Array, ""]
    product: Float[Array, ""]
    own: Float[Array, ""]
    own_square: Float[Array, ""]
    own_product: Float[Array, ""]
    stein: Float[Array, ""]
    even: Float[Array, ""]
    cubic: Float[Array, ""]
    fourth: Float[Array, ""]


def clipped_normal(level: Float[Array, ""]) -> ClippedNormal:
    """Moments for a level, which may be differentiated by it."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    pieces = ((jnp.zeros_like(level), level), (level, level + TAIL))
    x = jnp.concatenate([low + (high - low) * (nodes + 1) / 2 for low, high in pieces])
    weight = jnp.concatenate([(high - low) / 2 * weights for low, high in pieces])
    weight = weight * 2 * jnp.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)  # twice: all integrands are even
    slope = np.repeat([1.0, 0.0], NODES)
    chi = slope * x + (1 - slope) * level
    third, stein = chi * (x**2 - 1) - slope * x, chi * x - slope
    square, product = weight @ chi**2, weight @ (chi * x)
    return ClippedNormal(
        level=level,
        square=square,
        product=product,
        own=weight @ third**2,
        own_square=weight @ (chi * third),
        own_product=weight @ (x * third),
        stein=weight @ stein**2,
        even=weight @ ((x**2 - 1) * stein),
        cubic=weight @ (chi * x * (x**2 - 1)),
        fourth=weight @ (chi * x) ** 2 - square - 2 * product**2,
    )
