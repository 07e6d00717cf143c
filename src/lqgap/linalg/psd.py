"""Symmetric positive semidefinite matrices.

Roots are differentiated by the equation they solve, R R = X, and not through their eigenvectors, whose
derivative does not exist where eigenvalues repeat: in the eigenbasis of X, with r_i the roots,

    d(X^1/2)_ij = dX_ij / (r_i + r_j) ,      d(X^-1/2)_ij = -dX_ij / (r_i r_j (r_i + r_j))
"""

import jax
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


def solve_unrolled(
    S: Float[Array, "n n"], e: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """S^-1 e and log det S, by S = G D G' with unit triangular G and diagonal D.

    For few rows: in a batch every operation is elementwise, many times faster than a call of LAPACK for each
    matrix.
    """
    size = len(S)
    factor = [[S[i, j] for j in range(size)] for i in range(size)]
    pivots, forward = [], [e[i] for i in range(size)]
    log_det = jnp.zeros((), S.dtype)
    for j in range(size):
        pivot = S[j, j]
        for k in range(j):
            pivot = pivot - factor[j][k] ** 2 * pivots[k]
            forward[j] = forward[j] - factor[j][k] * forward[k]
        for i in range(j + 1, size):
            for k in range(j):
                factor[i][j] = factor[i][j] - factor[i][k] * factor[j][k] * pivots[k]
            factor[i][j] = factor[i][j] / pivot
        pivots.append(pivot)
        log_det = log_det + jnp.log(pivot)
    backward = [value / pivot for value, pivot in zip(forward, pivots, strict=True)]
    for j in reversed(range(size)):
        for i in range(j + 1, size):
            backward[j] = backward[j] - factor[i][j] * backward[i]
    return jnp.stack(backward), log_det


def log_det_psd(X: Float[Array, "n n"]) -> Float[Array, ""]:
    """log det X for positive definite X."""
    return 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(X))))


@jax.custom_jvp
def sqrt_psd(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric root; eigenvalues that rounding made negative count as zero."""
    roots, vectors = _roots(X)
    return (vectors * roots[None, :]) @ vectors.T


@jax.custom_jvp
def inverse_sqrt_psd(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric X^-1/2 of a positive definite X."""
    roots, vectors = _roots(X)
    return (vectors / roots[None, :]) @ vectors.T


@sqrt_psd.defjvp
def _sqrt_psd_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (X,), (dX,) = primals, tangents
    roots, vectors = _roots(X)
    sums = roots[:, None] + roots[None, :]
    # Where X is singular, only directions that keep it so have a derivative: it is zero there.
    safe = jnp.where(sums > 0, sums, 1)
    change = jnp.where(sums > 0, (vectors.T @ dX @ vectors) / safe, 0)
    return sqrt_psd(X), vectors @ change @ vectors.T


@inverse_sqrt_psd.defjvp
def _inverse_sqrt_psd_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (X,), (dX,) = primals, tangents
    roots, vectors = _roots(X)
    products = roots[:, None] * roots[None, :]
    change = -(vectors.T @ dX @ vectors) / (products * (roots[:, None] + roots[None, :]))
    return inverse_sqrt_psd(X), vectors @ change @ vectors.T


def _roots(X: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(X)
    return jnp.sqrt(jnp.maximum(values, 0)), vectors
