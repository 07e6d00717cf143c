"""The member of a family nearest to a plant: least squares in the invariants, from several starts."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array

from lqgap.errors import InvalidArgumentError
from lqgap.simulators.building import Branch, Formula, branch_of, build_members
from lqgap.simulators.finite import Finite, batch_invariants, require_comparable
from lqgap.simulators.invariants import invariants, unit_weights
from lqgap.systems import LQG

NUM_DESCENTS = 8  # from the nearest of the starts
MAX_EVALUATIONS = 50


def find_nearest(branches: Sequence[Branch], starts: Finite, plant: LQG) -> tuple[np.ndarray, float]:
    """The parameters of the nearest member found, and its distance; `starts` are some members."""
    require_comparable(starts.systems, plant)
    length = starts.systems.num_states + plant.num_states
    units = starts[0]
    target = Finite([plant]).invariants(length=length, units=units)[0]
    vectors = batch_invariants(starts.systems, length=length, units=units)
    distances = np.linalg.norm(vectors - target, axis=1)
    best = [index for index in np.argsort(distances)[:NUM_DESCENTS] if np.isfinite(distances[index])]
    rows = [np.asarray(starts.parameters[index]) for index in best]
    found = [_descend(branch_of(theta, branches), theta, target, length, units) for theta in rows]
    if not found:
        raise InvalidArgumentError("no member that was tried has an optimum: there is none to be nearest")
    return min(found, key=lambda candidate: candidate[1])


def _descend(
    branch: Branch, theta: np.ndarray, target: np.ndarray, length: int, units: LQG
) -> tuple[np.ndarray, float]:
    """Least squares over the continuous parameters, the discrete ones held."""
    columns, is_traceable = branch.columns, branch.is_traceable
    weights = unit_weights(units, length=length)

    def residual(values: np.ndarray) -> np.ndarray:
        if is_traceable:
            return weights * np.asarray(_invariants_at(branch.formula, jnp.asarray(values), length)) - target
        row = theta.copy()
        row[columns] = values
        return batch_invariants(build_members([branch], row[None, :]), length=length, units=units)[0] - target

    def slope(values: np.ndarray) -> np.ndarray:
        return weights[:, None] * np.asarray(_slope_at(branch.formula, jnp.asarray(values), length))

    if not columns:
        return theta, float(np.linalg.norm(residual(theta[columns])))
    low, high = branch.ends
    slack = 1e-12 * np.maximum(1, np.abs(high))  # an interval of no width still needs room
    found = scipy.optimize.least_squares(
        residual,
        theta[columns],
        jac=slope if is_traceable else "2-point",  # pyright: ignore[reportArgumentType]
        bounds=(low - slack, high + slack),
        x_scale=high - low + slack,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=MAX_EVALUATIONS,
    )
    best = theta.copy()
    best[columns] = np.clip(found.x, low, high)
    return best, float(np.linalg.norm(found.fun))


@eqx.filter_jit
def _invariants_at(formula: Formula, values: Array, length: int) -> Array:
    return invariants(formula.plant(values), length=length)


@eqx.filter_jit
def _slope_at(formula: Formula, values: Array, length: int) -> Array:
    return jax.jacfwd(lambda values: invariants(formula.plant(values), length=length))(values)
