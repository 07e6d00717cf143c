"""How fast powers of a matrix decay: spectral radius and strong-stability certificates.

X is (kappa, gamma)-strongly stable if X = G Z G^-1 with ||Z|| <= 1 - gamma and
||G|| ||G^-1|| <= kappa; then ||X^k|| <= kappa (1 - gamma)^k. Two constructions of G:

    by weight:    G = weight^1/2, contracting if  weight - X weight X' > 0
    by Lyapunov:  G = Y^-1/2 with  Y - X' Y X = I, which exists whenever rho(X) < 1
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.linalg.psd import inverse_sqrt_psd, sqrt_psd, symmetrize


class StrongStability(eqx.Module):
    """Constants with ||X^k|| <= kappa (1 - gamma)^k; a certificate only where gamma > 0."""

    kappa: Float[Array, ""]
    gamma: Float[Array, ""]


def spectral_radius(X: Float[Array, "n n"]) -> Float[Array, ""]:
    """The largest absolute eigenvalue; NaN if an entry is."""
    return jnp.max(jnp.abs(jnp.linalg.eigvals(X)))


def spectral_norm(X: Float[Array, "m n"]) -> Float[Array, ""]:
    """The largest singular value; NaN if an entry is not finite.

    LAPACK, asked for the singular values of what is infinite, prints to standard output or never returns.
    """
    is_finite = jnp.all(jnp.isfinite(X))
    return jnp.where(is_finite, jnp.linalg.norm(jnp.where(is_finite, X, 0), ord=2), jnp.nan)


def certify_by_weight(X: Float[Array, "n n"], weight: Float[Array, "n n"]) -> StrongStability:
    """The certificate of a positive definite weight, such as a covariance that X maintains; else NaN."""
    root, inverse_root = sqrt_psd(weight), inverse_sqrt_psd(weight)
    return StrongStability(
        kappa=spectral_norm(root) * spectral_norm(inverse_root),
        gamma=1 - spectral_norm(inverse_root @ X @ root),
    )


def certify_by_lyapunov(X: Float[Array, "n n"]) -> StrongStability:
    """The certificate of the Lyapunov equation, for any X with spectral radius below 1."""
    Y = symmetrize(lyapunov_sum(X.T, jnp.eye(len(X))))
    return certify_by_weight(X, symmetrize(jnp.linalg.inv(Y)))
