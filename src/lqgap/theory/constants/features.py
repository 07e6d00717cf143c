"""Value targets as inner products: f(Theta, E) = <model_features(Theta), sample_features(E)>.

A sample E is the window eta of past inputs and observations, the input u included, and the value target
Y(y) = y'Phi y + linear . y + constant of the model acted on. A model Theta predicts y ~ N(N eta, S), N its
ARX matrix, so that

    f = E Y = <N (x) N, Phi (x) eta eta'> + <N, linear eta'> + <S, Phi> + constant .

Phi and eta eta' are symmetric, so that of N (x) N only the part counts that is symmetric in rows and in
columns: for i <= j and a <= b

    (N_ia N_jb + N_ja N_ib) / 2   against   c_ij Phi_ij c_ab eta_a eta_b ,   c = 1 on the diagonal, 2 off it,

which leaves d = p(p+1)/2 q(q+1)/2 + pq + p(p+1)/2 + 1 features, q = l (m + p) + m. All functions are for
one model or one sample, and safe under `jit` and `vmap`; with G the sum over samples of the outer product of
their features, the distance of two models on all of them is the quadratic form of G at the difference of
the models' features."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, read_count
from lqgap.systems import LQG, Optimum, ValueTarget, arx_matrix


def num_features(*, num_inputs: IntLike, num_outputs: IntLike, length: IntLike) -> int:
    """d: how many features there are."""
    m = read_count("num_inputs", num_inputs, least=1)
    p = read_count("num_outputs", num_outputs, least=1)
    q = read_count("length", length, least=1) * (m + p) + m
    pairs = p * (p + 1) // 2
    return pairs * (q * (q + 1) // 2) + p * q + pairs + 1


def model_features(optimum: Optimum, plant: LQG, *, length: IntLike) -> Float[Array, " feature"]:
    """The features of a model."""
    return prediction_features(arx_matrix(optimum, plant, length=length), optimum.S)


def prediction_features(
    N: Float[Array, "output window"], S: Float[Array, "output output"]
) -> Float[Array, " feature"]:
    """The features of a model that predicts y ~ N(N eta, S)."""
    (i, j), (a, b) = np.triu_indices(len(N)), np.triu_indices(N.shape[1])
    straight = N[i][:, a] * N[j][:, b]
    crossed = N[j][:, a] * N[i][:, b]
    quadratic = 0.5 * (straight + crossed)
    return jnp.concatenate([quadratic.ravel(), N.ravel(), S[i, j], jnp.ones(1, N.dtype)])


def sample_features(target: ValueTarget, window: Float[Array, " window"]) -> Float[Array, " feature"]:
    """The features of a sample: the target of the model acted on, and the window eta (of `arx_window`)."""
    (i, j), (a, b) = np.triu_indices(len(target.Phi)), np.triu_indices(len(window))
    Phi = jnp.asarray(_multiplicity(i, j)) * target.Phi[i, j]
    past = jnp.asarray(_multiplicity(a, b)) * window[a] * window[b]
    linear = target.linear[:, None] * window[None, :]
    return jnp.concatenate([jnp.outer(Phi, past).ravel(), linear.ravel(), Phi, target.constant[None]])


def _multiplicity(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """How often an entry of the upper triangle occurs in the whole matrix."""
    return np.where(rows == columns, 1.0, 2.0)
