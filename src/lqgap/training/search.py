"""The worst member of a continuous family, by gradient ascent of the gap over its parameters.

Random starts and the best of them improved: the gap's derivative passes through the rollout, the filter and
the optimum of the member, all of which depend on the parameters. Families whose `build` cannot be traced
are searched by their random members alone.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.batches import batch_of_one
from lqgap.evaluation.gap import GapEstimate, gap
from lqgap.evaluation.reference import reference_of
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy
from lqgap.policies.limits import Limits
from lqgap.simulators.building import Branch
from lqgap.simulators.family import AbstractFamily
from lqgap.training.objective import ExactObjective, SampledObjective

NUM_STARTS = 64
NUM_CLIMBERS = 6
NUM_CLIMBS = 12
STRIDE = 0.08  # of the first climbs, in units of the parameters' ranges; the last are a tenth of it


def find_worst(
    policy: AbstractPolicy,
    family: AbstractFamily,
    key: Array,
    *,
    horizon: int,
    limits: Limits,
    num_rollouts: int = 64,
    ends: bool = True,
) -> tuple[Float[np.ndarray, "member parameter"], GapEstimate]:
    """Parameters of members with large gaps, the worst first, and their gaps on fresh noise."""
    key_start, key_noise, key_judge = jax.random.split(key, 3)
    starts = family.sample(key_start, NUM_STARTS)
    bounds = (np.asarray(limits.low), np.asarray(limits.high))
    measured: dict[str, Any] = dict(horizon=horizon, limits=bounds, ends=ends)
    at_start = gap(policy, starts, key=key_noise, num_rollouts=max(num_rollouts, 2), **measured)
    order = np.argsort(-at_start.mean)[:NUM_CLIMBERS]
    theta = np.asarray(starts.parameters)[order]
    for branch in family.branches:
        rows = branch.rows_of(theta)
        if len(rows) and branch.columns and branch.is_traceable:
            slopes_fn = functools.partial(
                _slopes, policy, branch, key_noise, limits, horizon, ends, num_rollouts
            )
            theta[rows] = _climb(branch, theta[rows], slopes_fn)
    theta = theta[family.is_inside(theta)]
    found = family.members(theta) if len(theta) else starts.subset(order)
    judged = gap(policy, found, key=key_judge, num_rollouts=4 * num_rollouts, **measured)
    worst_first = np.argsort(-judged.mean)
    of_members = lambda g: (g.mean, g.stderr, g.per_step, g.value)  # noqa: E731
    judged = eqx.tree_at(of_members, judged, replace_fn=lambda rows: rows[worst_first])
    return np.asarray(found.parameters)[worst_first], judged


def _climb(branch: Branch, theta: np.ndarray, slopes_fn: Callable[[Array], Array]) -> np.ndarray:
    columns = branch.columns
    low, high = branch.ends
    width = np.where(high > low, high - low, 1.0)
    unit = (theta[:, columns] - low) / width
    for climb in range(NUM_CLIMBS):
        slope = np.nan_to_num(np.asarray(slopes_fn(jnp.asarray(low + unit * width))) * width)
        size = np.linalg.norm(slope, axis=1, keepdims=True)
        stride = STRIDE * 10 ** (-climb / (NUM_CLIMBS - 1))
        unit = np.clip(unit + stride * slope / np.maximum(size, 1e-30), 0, 1)
    climbed = theta.copy()
    climbed[:, columns] = low + unit * width
    return climbed


@eqx.filter_jit
def _slopes(
    policy: AbstractPolicy,
    branch: Branch,
    key: Array,
    limits: Limits,
    horizon: int,
    ends: bool,
    num_rollouts: int,
    values: Array,
) -> Array:
    def gap_at(value: Array) -> Any:
        plant = branch.plant(value)
        if isinstance(policy, AbstractLinearPolicy):
            objective = ExactObjective(batch_of_one(plant), horizon, ends)
        else:
            references = batch_of_one(reference_of(plant, horizon=horizon, ends=ends))
            objective = SampledObjective(references, limits, jnp.ones(()))
        return objective.gaps(policy, key, num_rollouts)[0]

    # One member after the other: their loops must not run at the same time (docs/decisions/0005).
    return jax.lax.map(jax.grad(gap_at), values)
