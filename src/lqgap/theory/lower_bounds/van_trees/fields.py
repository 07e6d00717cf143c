"""Priors on a box of parameters, and fields that vanish at its faces.

The coordinates of a box are z in [-1, 1]^q. There log mu = tilt.z + bend.z^2 up to a constant, and the field

    a_{h,l}^k(theta) = sum_b c_{h,l,b} f_b(z) ,     f_b = (1 - z_k^2) times a product of Legendre polynomials,

whose divergence against mu is  (1/mu) d_k(mu f_b) = d_k f_b + f_b d_k log mu.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Prior(eqx.Module):
    """A log-quadratic density on a box, up to its constant."""

    tilt: Float[Array, " parameter"]
    bend: Float[Array, " parameter"]

    def log_density(self, z: Float[Array, " parameter"]) -> Float[Array, ""]:
        """In coordinates of the box, not normalised."""
        return self.tilt @ z + self.bend @ z**2


class Basis(eqx.Module):
    """The functions f_b of a field with components k, by the degrees of their polynomials."""

    degrees: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __call__(
        self, z: Float[Array, " parameter"], prior: Prior
    ) -> Float[Array, "function parameter_or_divergence"]:
        """Values of all functions at z: of each a vector with one component, and its divergence last."""
        q = len(z)
        f, slope = self._values(z), jax.jacfwd(self._values)(z)  # component, function; and by parameter
        steep = jax.grad(prior.log_density)(z)
        k = jnp.arange(q)
        divergence = slope[k, :, k] + f * steep[:, None]
        vectors = jnp.eye(q)[:, None, :] * f[:, :, None]
        return jnp.concatenate([vectors, divergence[:, :, None]], axis=2).reshape(-1, q + 1)

    def _values(self, z: Array) -> Array:
        most = max(map(max, self.degrees))
        legendre = [jnp.ones_like(z), z]
        for n in range(1, most):
            legendre.append(((2 * n + 1) * z * legendre[-1] - n * legendre[-2]) / (n + 1))
        table = jnp.stack(legendre[: most + 1])  # degree, parameter
        rows = jnp.asarray(self.degrees)
        products = jnp.prod(table[rows, jnp.arange(len(z))], axis=1)
        return (1 - z[:, None] ** 2) * products[None, :]


def make_basis(num_parameters: int) -> Basis:
    """Products of polynomials, of a degree that the rules of `bound` resolve."""
    most = {1: 5, 2: 3}[num_parameters]
    return Basis(tuple(itertools.product(range(most + 1), repeat=num_parameters)))


def gauss_rule(num_parameters: int, num_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in [-1, 1]^q and weights that sum to one."""
    nodes, weights = np.polynomial.legendre.leggauss(num_points)
    points = np.array(list(itertools.product(nodes, repeat=num_parameters)))
    return points, np.prod(list(itertools.product(weights / 2, repeat=num_parameters)), axis=1)
