"""The worst member of a continuous family, by gradient ascent of the gap over its parameters.

Random starts and the best of them improved: the gap's derivative passes through the rollout, the filter and
the optimum of the member, all of which depend on the parameters. Families whose `build` cannot be traced
are searched by their random members alone.
"""

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
) -> tuple[Float[np.ndarray, "member parameter"], GapEstimate]:
    """Parameters of members with large gaps, the worst first, and their gaps on fresh noise."""
    key_start, key_noise, key_judge = jax.random.split(key, 3)
    starts = family.sample(NUM_STARTS, key=key_start, replace=True)
    bounds = (np.asarray(limits.low), np.asarray(limits.high))
    at_start = gap(
        policy, starts, horizon=horizon, key=key_noise, num_rollouts=max(num_rollouts, 2), limits=bounds
    )
    order = np.argsort(-at_start.mean)[:NUM_CLIMBERS]
    theta = np.asarray(starts.parameters)[order]
    for branch in family.branches:
        rows = branch.rows_of(theta)
        if len(rows) and branch.columns and branch.is_traceable:
            theta[rows] = _climb(policy, branch, theta[rows], key_noise, limits, horizon, num_rollouts)
    theta = theta[family.is_inside(theta)]
    found = family.members(theta) if len(theta) else starts.subset(order)
    judged = gap(policy, found, horizon=horizon, key=key_judge, num_rollouts=4 * num_rollouts, limits=bounds)
    worst_first = np.argsort(-judged.mean)
    of_members = lambda g: (g.mean, g.stderr, g.per_step, g.value)  # noqa: E731
    judged = eqx.tree_at(of_members, judged, replace_fn=lambda rows: rows[worst_first])
    return np.asarray(found.parameters)[worst_first], judged


def _climb(
    policy: AbstractPolicy,
    branch: Branch,
    theta: np.ndarray,
    key: Array,
    limits: Limits,
    horizon: int,
    num_rollouts: int,
) -> np.ndarray:
    columns = branch.columns
    low, high = branch.ends
    width = np.where(high > low, high - low, 1.0)
    unit = (theta[:, columns] - low) / width
    for climb in range(NUM_CLIMBS):
        _, slope = _slopes(
            policy, branch, jnp.asarray(low + unit * width), key, limits, horizon, num_rollouts
        )
        slope = np.nan_to_num(np.asarray(slope) * width)
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
    values: Array,
    key: Array,
    limits: Limits,
    horizon: int,
    num_rollouts: int,
) -> tuple[Array, Array]:
    def gap_at(value: Array) -> Any:
        plant = branch.plant(value)
        if isinstance(policy, AbstractLinearPolicy):
            objective = ExactObjective(batch_of_one(plant), horizon)
        else:
            references = batch_of_one(reference_of(plant, horizon=horizon))
            objective = SampledObjective(references, limits, jnp.ones(()))
        return objective.gaps(policy, key, num_rollouts)[0]

    # One member after the other: their loops must not run at the same time (docs/decisions/0005).
    return jax.lax.map(jax.value_and_grad(gap_at), values)
