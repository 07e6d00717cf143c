"""Symmetric positive semidefinite matrices."""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float


def symmetrize(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric part: removes the asymmetry that rounding leaves."""
    return 0.5 * (X + X.T)


def quadratic(x: Float[Array, " n"], X: Float[Array, "n n"]) -> Float[Array, ""]:
    """The form x' X x."""
    return x @ X @ x


def solve_psd(X: Float[Array, "n n"], Y: Float[Array, "n *columns"]) -> Float[Array, "n *columns"]:
    """X^-1 Y for positive definite X, by Cholesky."""
    return jsl.cho_solve(jsl.cho_factor(X, lower=True), Y)


def log_det_psd(X: Float[Array, "n n"]) -> Float[Array, ""]:
    """log det X for positive definite X."""
    return 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(X))))


def sqrt_psd(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric root; eigenvalues that rounding made negative count as zero."""
    values, vectors = jnp.linalg.eigh(X)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :]) @ vectors.T


def inverse_sqrt_psd(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric X^-1/2 of a positive definite X."""
    values, vectors = jnp.linalg.eigh(X)
    return (vectors / jnp.sqrt(values)[None, :]) @ vectors.T
