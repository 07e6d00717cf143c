"""Algorithm 2: the members of a class that a record of random inputs leaves, in several kinds of set.

    likelihood   the likelihood ratio stays above delta at all times (see `simulators.likelihood`); valid
                 under every policy, exact from the first step on, and by far the sharpest
    ellipsoid    for every output i, with the regression M_hat, its precision G = ridge I + sum phi phi', its
                 number of lags h and of features d, and M, S, Abar, xhat of the member,
                 ||(M_hat - M)_i||_G <= (S_ii (2 log(p / delta) + log det G - d log ridge))^1/2
                                        + ridge^1/2 ||M_i|| + (sum_t [C Abar^h xhat_{t-h|t-h-1}]_i^2)^1/2
    balanced     both the estimate and the member are put into balanced coordinates, the member is rotated to
                 the estimate, and A, B, C, F differ by at most (C_w / T)^1/2 each in the spectral norm
    printed      as `balanced`, with the member in the coordinates it is given in, and L in place of F

The printed set is the paper's. An orthogonal matrix does not take coordinates of unit noise to balanced ones,
so the printed set loses the truth even on endless records; it is here to be compared with, and warns.
"""

import warnings
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import (
    FloatLike,
    IntLike,
    MatrixLike,
    read_count,
    read_positive,
    read_probability,
    read_record,
)
from lqgap.batches import in_turn
from lqgap.errors import InvalidArgumentError, RefutedClassError
from lqgap.identification.markov import (
    MAX_LENGTH,
    MarkovEstimate,
    MarkovParameters,
    estimate_markov,
    exact_markov,
)
from lqgap.identification.realization import Realization, best_rotation, innovation_form, rotate
from lqgap.identification.subspace import balanced, realize
from lqgap.policies.policy import require_one_of
from lqgap.simulators import AbstractFamily, Finite, Unrefuted, likelihood_set
from lqgap.simulators.audit.measures import measure_members
from lqgap.systems import LQG, Optimum
from lqgap.systems.steady import steady_correct, steady_predict

FAR = 1e9  # in place of a difference that is not finite, of which LAPACK may never find the norm
METHODS = ("likelihood", "ellipsoid", "balanced", "printed")
Margins = Float[np.ndarray, " member"]


def select_models(
    members: Finite | AbstractFamily,
    y: MatrixLike,
    u: MatrixLike,
    *,
    method: Literal["likelihood", "ellipsoid", "balanced", "printed"] = "likelihood",
    delta: float = 0.05,
    length: IntLike | None = None,
    ridge: FloatLike = 1.0,
    C_w: FloatLike | None = None,
) -> Finite | Unrefuted:
    """The members that a record leaves, again as a class.

    Args:
        members: a class; a family with continuous parameters for the likelihood set only.
        delta: probability with which the truth may be lost (likelihood and ellipsoid).
        length: lags of the regression (all but likelihood); if left out, `truncation_length`.
        ridge: of the regression, chosen before the data were seen.
        C_w: the constant of the radius (balanced and printed only), which depends on the unknown plant.
    """
    require_one_of("method", method, METHODS)
    if method == "likelihood":
        return likelihood_set(members, y, u, delta=delta)
    if not isinstance(members, Finite):
        raise InvalidArgumentError(
            f"members is a {type(members).__name__}, and the {method} set needs a finite class, such as a "
            f"grid: only the likelihood set takes a family"
        )
    systems, ridge = members.systems, read_positive("ridge", ridge)
    y, u = read_record(y, u, num_outputs=systems.num_outputs, num_inputs=systems.num_inputs)
    length = truncation_length(members, horizon=len(y)) if length is None else length
    estimate = estimate_markov(y, u, length=length, ridge=ridge)
    if method == "ellipsoid":
        margins = _ellipsoid_margins(members, estimate, y, u, delta)
    else:
        if C_w is None:
            raise InvalidArgumentError(f"C_w is missing: the {method} set has the radius (C_w / T)^1/2")
        radius = np.sqrt(read_positive("C_w", C_w) / len(y))
        margins = radius - coordinate_distances(members, estimate, method=method)
    if not np.any(margins >= 0):
        raise RefutedClassError(
            f"the record leaves no member in the {method} set (the best misses by {-np.max(margins):.3g}): "
            f"the plant is outside of the class, or the set is too small"
        )
    return members.subset(margins >= 0)


def truncation_length(members: Finite, *, horizon: IntLike) -> int:
    """The fewest lags after which ||Abar^h|| <= 1 / horizon^2, by the certificates of all members.

    With ||Abar^h|| <= kappa (1 - gamma)^h that is  h >= log(kappa horizon^2) / log(1 / (1 - gamma)) .
    """
    members = Finite.of(members)
    horizon = read_count("horizon", horizon, least=1, most=10_000_000)
    members.optima()  # raises where a member has no predictor
    decay = measure_members(members).predictor
    lengths = np.log(decay.kappa * float(horizon) ** 2) / -np.log1p(-decay.gamma)
    longest = float(np.max(lengths))
    if not longest <= MAX_LENGTH:
        raise InvalidArgumentError(
            f"the predictor of member {int(np.argmax(lengths))} has an error that decays too slowly: "
            f"{longest:.3g} lags, more than {MAX_LENGTH}; give a length"
        )
    return max(1, int(np.ceil(longest)))


def coordinate_distances(
    members: Finite, estimate: MarkovEstimate, *, method: Literal["balanced", "printed"]
) -> Margins:
    """For every member, the largest of the distances of A, B, C and the gain from a realised estimate."""
    realize(estimate, order=members.systems.num_states, weighting="plain")  # raises where there is none
    if method == "printed":
        warnings.warn(
            "the printed set compares plants in coordinates that an orthogonal matrix cannot match, and "
            "loses the truth even on endless records: use the balanced, the ellipsoid or the likelihood set",
            UserWarning,
            stacklevel=2,
        )
    forms = coordinate_forms(members.systems, members.optima(), length=estimate.length, method=method)
    return np.asarray(form_distances(*forms, estimate.parameters, method=method))


def coordinate_forms(
    systems: LQG, optima: Optimum, *, length: int, method: str
) -> tuple[Realization, Float[Array, "member state output"]]:
    """The matrices of every member that the balanced or the printed set compares: A, B, C, and F or L."""
    if method == "printed":
        return jax.vmap(innovation_form)(optima, systems), optima.L
    exact = _markov_of(optima, systems, length)
    forms = jax.vmap(partial(balanced, order=systems.num_states))(exact)
    return forms, forms.F


@partial(jax.jit, static_argnames="method")
def form_distances(
    forms: Realization, gains: Array, parameters: MarkovParameters, *, method: str
) -> Float[Array, " member"]:
    """The largest of the distances of every member from a plant with these Markov parameters."""
    reference = balanced(parameters, forms.A.shape[-1])
    gain = reference.F
    if method == "printed":
        gain = jnp.linalg.pinv(jnp.nan_to_num(reference.A)) @ gain
        forms = in_turn(gain, forms)
    return _distances(forms, gains, reference, gain)


def _ellipsoid_margins(members: Finite, estimate: MarkovEstimate, y: Array, u: Array, delta: Any) -> Margins:
    """The slack of the tightest output of every member; below zero, it is refuted."""
    delta = read_probability("delta", delta)
    if bool(jnp.any(jnp.isnan(y))):
        raise InvalidArgumentError(
            "y has lost observations (NaN), with which the ellipsoid is not valid: use the likelihood set"
        )
    optima, length = members.optima(), estimate.length
    systems, ridge = members.systems, float(estimate.ridge)
    G = np.asarray(estimate.precision())
    exact = np.asarray(jax.vmap(MarkovParameters.matrix)(_markov_of(optima, systems, length)))
    error = np.asarray(estimate.parameters.matrix()) - exact
    distance = np.sqrt(np.einsum("nif,fg,nig->ni", error, G, error))
    outputs = exact.shape[1]
    information = np.linalg.slogdet(G)[1] - len(G) * np.log(ridge)
    spread = np.sqrt(np.diagonal(optima.S, axis1=1, axis2=2) * (2 * np.log(outputs / delta) + information))
    prior = np.sqrt(ridge) * np.linalg.norm(exact, axis=2)
    forgotten = np.linalg.matrix_power(np.asarray(systems.A - optima.F @ systems.C), length)
    rows = jnp.asarray(np.asarray(systems.C) @ forgotten)
    cut = np.sqrt(np.asarray(_truncated(optima, systems, rows, y[:-length], u[:-length])))
    return np.min(spread + prior + cut - distance, axis=1)


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, None, None))
def _truncated(optimum: Optimum, plant: LQG, row: Array, y: Array, u: Array) -> Array:
    """The sum of squares of rows @ xhat_{t|t-1} along the record, for every member and output."""

    def step(carry: tuple[Array, Array], sample: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        predicted, total = carry
        xhat = steady_correct(optimum, plant, predicted, sample[0])
        return (steady_predict(plant, xhat, sample[1]), total + (row @ predicted) ** 2), None

    start = jnp.zeros_like(plant.A[0]), jnp.zeros_like(plant.C[:, 0])
    return jax.lax.scan(step, start, (y, u))[0][1]


def _markov_of(optima: Optimum, systems: LQG, length: int) -> MarkovParameters:
    return jax.vmap(lambda optimum, plant: exact_markov(optimum, plant, length=length))(optima, systems)


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, None, None))
def _distances(form: Realization, own_gain: Array, reference: Realization, gain: Array) -> Array:
    T = best_rotation(form, reference)
    moved, own = rotate(form, T), T.T @ own_gain
    distance = jnp.asarray(0.0)
    for one, other in ((moved.A, reference.A), (moved.B, reference.B), (moved.C, reference.C), (own, gain)):
        apart = in_turn(distance, jnp.nan_to_num(one - other, nan=FAR, posinf=FAR, neginf=-FAR))
        distance = jnp.maximum(distance, jnp.linalg.norm(apart, ord=2))
    return distance
