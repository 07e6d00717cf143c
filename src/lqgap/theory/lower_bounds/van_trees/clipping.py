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
import numpy as np

TAIL, NODES = 12.0, 80  # beyond level + TAIL nothing is left in double precision


class ClippedNormal(eqx.Module):
    """The moments above, plain numbers, for one level."""

    level: float
    square: float
    product: float
    own: float
    own_square: float
    own_product: float
    stein: float
    even: float
    cubic: float
    fourth: float


def clipped_normal(level: float) -> ClippedNormal:
    """Moments for a level."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    pieces = ((0.0, level), (level, level + TAIL))
    x = np.concatenate([low + (high - low) * (nodes + 1) / 2 for low, high in pieces])
    weight = np.concatenate([(high - low) / 2 * weights for low, high in pieces])
    weight = weight * 2 * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)  # twice: all integrands are even
    chi, slope = np.minimum(x, level), (x < level).astype(float)
    third, stein = chi * (x**2 - 1) - slope * x, chi * x - slope
    square, product = weight @ chi**2, weight @ (chi * x)
    return ClippedNormal(
        level=level,
        square=float(square),
        product=float(product),
        own=float(weight @ third**2),
        own_square=float(weight @ (chi * third)),
        own_product=float(weight @ (x * third)),
        stein=float(weight @ stein**2),
        even=float(weight @ ((x**2 - 1) * stein)),
        cubic=float(weight @ (chi * x * (x**2 - 1))),
        fourth=float(weight @ (chi * x) ** 2 - square - 2 * product**2),
    )
