"""Standard normal numbers, fast: the floor of every Monte Carlo estimate.

A 64-bit word of JAX's counter-based generator gives two numbers by inversion, each from 32 bits: a sign s, a
tail probability m in (0, 1], and

    z = s sqrt(2) erfinv(1 - m) ,    erfinv(1 - m) = (1 - m) polynomial(w) ,    w = -log(m (2 - m)) ,

with the polynomials of M. Giles, Approximating the erfinv function (GPU Computing Gems, 2011), to single
precision. The tail is computed from m itself, so that it reaches 6.2 standard deviations; errors are below
1e-5 within five, and 0.003 at the very end. This is several times as fast as `jax.random.normal` in double
precision, and a key gives the same numbers in both precisions.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def standard_normal(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any) -> Float[Array, "..."]:
    """Independent draws from N(0, 1)."""
    count = math.prod(shape)
    words = jax.random.bits(key, (-(-count // 2),), jnp.uint64)
    # Inverted apart and then put together: the other way round, the compiler would compute all words twice.
    halves = [invert(half.astype(jnp.uint32)) for half in (words >> 32, words)]
    return jnp.concatenate(halves)[:count].astype(dtype).reshape(shape)


def invert(word: Array) -> Array:
    """The normal number of a 32-bit word: its last bit is the sign, the others the tail probability."""
    tail = ((word >> 1).astype(jnp.float32) + np.float32(0.5)) * np.float32(2.0**-31)
    w = -jnp.log(tail * (2 - tail))
    central = _polynomial(CENTRAL, w - np.float32(2.5))
    outer = _polynomial(TAIL, jnp.sqrt(jnp.maximum(w, 5)) - 3)
    size = np.float32(math.sqrt(2)) * (1 - tail) * jnp.where(w < 5, central, outer)
    return jnp.where(word & 1, -size, size)


def _polynomial(coefficients: tuple[float, ...], w: Array) -> Array:
    value = jnp.full_like(w, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * w + np.float32(coefficient)
    return value
