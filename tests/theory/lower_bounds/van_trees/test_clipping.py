import jax.numpy as jnp
import numpy as np
import pytest

from lqgap.theory.lower_bounds.van_trees.clipping import clipped_normal


def sums(level):
    """All moments by the midpoint rule, whose jumps at the level lie between two cells."""
    cells = 400_000
    x = (np.arange(cells) + 0.5) * (16 * level / cells) - 8 * level
    weight = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (16 * level / cells)
    chi, slope = np.clip(x, -level, level), (np.abs(x) < level) * 1.0
    third, stein = chi * (x**2 - 1) - slope * x, chi * x - slope
    return {
        "square": weight @ chi**2,
        "product": weight @ (chi * x),
        "own": weight @ third**2,
        "own_square": weight @ (chi * third),
        "own_product": weight @ (x * third),
        "stein": weight @ stein**2,
        "even": weight @ ((x**2 - 1) * stein),
        "cubic": weight @ (chi * x * (x**2 - 1)),
        "fourth": weight @ (chi**2 * x**2) - weight @ chi**2 - 2 * (weight @ (chi * x)) ** 2,
    }


@pytest.mark.parametrize("level", [1.6, 2.3])
def test_moments_are_those_of_their_definitions(level):
    found = clipped_normal(jnp.asarray(level))
    for name, value in sums(level).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("level", [0.3, 1.0, 2.5])
def test_steins_identities_hold(level):
    """E x f(x) = E f'(x): for f = chi, and for f = chi x^2 in own_product and cubic."""
    moments = clipped_normal(jnp.asarray(level))
    edge = np.exp(-(level**2) / 2) / np.sqrt(2 * np.pi)
    inside = np.prod([np.sqrt(np.pi / 2) ** -1, _half(level)])  # P(|x| < level)
    np.testing.assert_allclose(moments.product, inside, rtol=1e-12)
    np.testing.assert_allclose(moments.own_product, moments.product, rtol=1e-12)
    slope_square = inside - 2 * level * edge  # E chi' x^2
    np.testing.assert_allclose(moments.square, slope_square + level**2 * (1 - inside), rtol=1e-12)
    np.testing.assert_allclose(moments.cubic, slope_square + moments.product, rtol=1e-12)
    np.testing.assert_allclose(
        moments.own_square, moments.fourth + 2 * moments.product**2 - slope_square, rtol=1e-11, atol=1e-13
    )


def _half(level):
    nodes, weights = np.polynomial.legendre.leggauss(40)
    x = level * (nodes + 1) / 2
    return level / 2 * weights @ np.exp(-(x**2) / 2)


def test_a_level_out_of_reach_clips_nothing():
    moments = clipped_normal(jnp.asarray(9.0))
    np.testing.assert_allclose([moments.square, moments.product], 1, rtol=1e-12)
    np.testing.assert_allclose([moments.fourth, moments.stein, moments.even, moments.cubic], [0, 2, 2, 2], atol=1e-9)
