"""The intrinsic complexity of a class, delta_E = dim_E(F, 1/H) log N(F, 1/H) D^2, by formula and as measured.

    finite       dim_E <= N - 1                       log N <= log N
    general      dim_E by d linear features            log N of all matrices of these norms
    low-rank     the same dim_E                       log N of k parameters
    with data    d = binom(2l + 2 + k, k) features     log N of k parameters

"With data" is the low-rank class of observed states (C = I) whose A and B are linear in the parameters and
whose filter gain is known: predictions are then polynomials of degree l + 1 in the parameters, targets of
degree 2l + 2. The paper prints k^4 l^2k for that dimension. The other rows are measured: the rank of the
models' features over the members, the longest Eluder sequence and the smallest cover found on samples of
the class."""

import math

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from lqgap.arguments import FloatLike, IntLike, read_count
from lqgap.simulators import Finite, check_assumptions
from lqgap.systems import LQG, Optimum
from lqgap.theory.constants.comparison import read_arguments
from lqgap.theory.constants.corrected import corrected_constants
from lqgap.theory.constants.covering import (
    log_cover_of_matrices,
    log_cover_of_parameters,
    measured_cover,
    sensitivities,
)
from lqgap.theory.constants.eluder import greedy_eluder_sequence, linear_eluder_bound
from lqgap.theory.constants.features import model_features, num_features
from lqgap.theory.constants.norms import Norms, contracting, uniform_norms
from lqgap.theory.constants.samples import draw_samples
from lqgap.theory.constants.sheet import Sheet

RANK_TOLERANCE = 1e-10  # of the largest singular value, features scaled to unit size

MEANING = {
    "features": "d: dimension of model_features and sample_features",
    "features_full": "the same without the symmetric reduction",
    "rank": "rank of model_features over the members",
    "dim_E": "Eluder dimension at 1/H, from above; of pairs with the truth if finite",
    "dim_E_pairs": "the same of all pairs",
    "dim_E_printed": "the same as printed, hidden constants 1",
    "log_cover": "log covering number at 1/H, from above",
    "D": "bound of the functions",
    "delta_E": "dim_E log_cover D^2",
    "eluder_found": "Eluder sequence of all pairs, found on samples",
    "cover_found": "members that cover all within 1/H on samples",
}


def complexity(
    members: Finite,
    *,
    horizon: FloatLike,
    length: IntLike,
    delta: FloatLike | None = None,
    num_runs: IntLike = 16,
    num_steps: IntLike = 16,
) -> Sheet:
    """The complexity of a class seen as finite, general, low-rank and low-rank with data.

    Args:
        length: of the clipped history.
        delta: the probability of failure; left out, 1 / horizon.
        num_runs, num_steps: of the runs whose samples the measured rows are taken on.
    """
    horizon, delta, _ = read_arguments(horizon, delta, 1.0)
    length, systems = read_count("length", length, least=1), members.systems
    norms = uniform_norms(contracting(check_assumptions(members)))
    state = corrected_constants(norms, horizon=horizon, delta=delta, C_w=1.0)
    samples = draw_samples(
        members, length=length, num_runs=num_runs, num_steps=num_steps, key=jax.random.key(0)
    )
    features, values = class_features(members, length=length), np.asarray(samples.values)
    p, q = systems.num_outputs, length * (systems.num_inputs + systems.num_outputs) + systems.num_inputs
    figures = {
        "features": num_features(num_inputs=systems.num_inputs, num_outputs=p, length=length),
        "features_full": p**2 * q**2 + p * q + p**2 + 1,
        "rank": numerical_rank(features),
        "D": state["D"],
        "eluder_found": len(greedy_eluder_sequence(values, epsilon=1 / horizon)),
        "cover_found": len(measured_cover(values, radius=1 / horizon)),
    }
    measured = {name: float(value) for name, value in figures.items()}
    columns = _columns(members, norms, state, features, horizon=horizon, length=length)
    for column in columns.values():
        column["delta_E"] = column["dim_E"] * column["log_cover"] * state["D"] ** 2
    title = f"Complexity of a class of {len(members)} members, H = {horizon:g}, history of {length} steps"
    return Sheet(
        title=title, columns={name: measured | rows for name, rows in columns.items()}, meaning=MEANING
    )


def low_rank_dimension(*, num_parameters: IntLike, length: IntLike) -> int:
    """How many monomials of degree up to 2 length + 2 there are in the parameters."""
    k = read_count("num_parameters", num_parameters, least=1)
    return math.comb(2 * read_count("length", length, least=1) + 2 + k, k)


def class_features(members: Finite, *, length: IntLike) -> np.ndarray:
    """model_features of every member, a row each."""
    return np.asarray(_features(members.optima(), members.systems, read_count("length", length, least=1)))


def numerical_rank(rows: np.ndarray) -> int:
    """The rank of a matrix whose columns are of very different size: they are scaled first."""
    size = np.sqrt(np.mean(rows**2, axis=0))
    singular = np.linalg.svd(rows / np.where(size > 0, size, 1), compute_uv=False)
    return int(np.sum(singular > RANK_TOLERANCE * singular[0]))


def feature_radius(norms: Norms, state: dict[str, float], *, length: int) -> float:
    """A bound of ||sample_features|| on histories within the bounds of the class."""
    inputs, outputs = state["Ubar"], state["Ybar"]
    window = length * (inputs**2 + outputs**2) + inputs**2  # squared
    n_z, p = norms.N_P + norms.N_S**2 * norms.N_U, norms.num_outputs
    Phi = math.sqrt(p) * (norms.N_L**2 * n_z + norms.N_U)
    sigma = (1 + norms.N_L * norms.N_S) * norms.N_S * (state["Xbar_1"] + inputs)
    linear, constant = 2 * norms.N_L * n_z * sigma, n_z * sigma**2
    # Entries off a diagonal are counted twice: at most twice the Frobenius norm, for Phi and for the window.
    return math.sqrt(4 * Phi**2 * window**2 + linear**2 * window + 2 * Phi**2 + constant**2)


def _columns(
    members: Finite,
    norms: Norms,
    state: dict[str, float],
    features: np.ndarray,
    *,
    horizon: float,
    length: int,
) -> dict[str, dict[str, float]]:
    C_f = sensitivities(norms, state)["C_f"]
    scale = float(np.max(np.linalg.norm(features, axis=1)))
    m, p = norms.num_inputs, norms.num_outputs
    k = int(np.sum(np.ptp(np.asarray(members.parameters), axis=0) > 0)) or 1

    def of_dimension(dimension: int) -> float:
        radius = feature_radius(norms, state, length=length)
        return linear_eluder_bound(dimension=dimension, scale=scale, radius=radius, epsilon=1 / horizon)

    general = of_dimension(features.shape[1])
    printed = float(p**4 + p**3 * m + p**2 * m**2)
    by_parameters = log_cover_of_parameters(members, C_f, horizon=horizon)
    monomials = low_rank_dimension(num_parameters=k, length=length)
    with_data = of_dimension(min(monomials, features.shape[1]))
    return {
        "finite": {
            "dim_E": float(max(len(members) - 1, 1)),
            "dim_E_pairs": len(members) * (len(members) - 1) / 2,
            "log_cover": math.log(len(members)),
        },
        "general": {
            "dim_E": general,
            "dim_E_printed": printed,
            "log_cover": log_cover_of_matrices(norms, C_f, horizon=horizon),
        },
        "low-rank": {"dim_E": general, "dim_E_printed": printed, "log_cover": by_parameters},
        "with data": {
            "dim_E": with_data,
            "dim_E_printed": float(k**4 * length ** (2 * k)),
            "log_cover": by_parameters,
        },
    }


@eqx.filter_jit
def _features(optima: Optimum, systems: LQG, length: int) -> Array:
    return jax.lax.map(lambda member: model_features(*member, length=length), (optima, systems))
