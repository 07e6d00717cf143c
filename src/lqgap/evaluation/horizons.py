"""Gaps over several horizons, compiled once.

Gains of control depend on the steps that are left, gains of the filter on the steps that are past. So the
optimum of steps 0..h is that of a longer horizon H with its control moved ahead by H - h,

    K_t(h) = K_{t+H-h}(H) ,   M_t(h) = M_{t+H-h}(H) ,   L_t and S_t the same ,

and steps after h do not count. Policies with planned gains move them likewise (`for_horizon`). Where the task
goes on (`ends=False`) nothing moves: gaps are partial sums of the same runs.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from lqgap.arguments import IntLike, read_count, read_key, read_list
from lqgap.evaluation.arguments import MAX_HORIZON, read_horizon, read_systems
from lqgap.evaluation.gap import GapEstimate, estimate_gap, estimate_gaps, references_of
from lqgap.evaluation.monte_carlo import MAX_ROLLOUTS
from lqgap.evaluation.reference import Reference
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import read_limits
from lqgap.policies.policy import move_ahead
from lqgap.simulators.finite import Members


def gap_by_horizon(
    policy: AbstractPolicy,
    members: Members,
    *,
    horizons: Sequence[Any],
    key: PRNGKeyArray,
    num_rollouts: IntLike = 256,
    ends: bool = True,
) -> list[GapEstimate]:
    """The gaps of steps 0..h for every h; what the policy has planned is planned for each h.

    All horizons meet the same noise; V* (`value`) is that of the longest.

    Args:
        policy: made for the longest horizon, or for none.
        members: a finite class, a batched LQG, or one LQG.
        ends: whether the task ends at each horizon; if not, what the policy has planned stays.
    """
    horizons = [read_count("horizons", h, least=0, most=MAX_HORIZON) for h in read_list("horizons", horizons)]
    longest, key = read_horizon(policy, max(horizons)), read_key(key)
    systems = read_systems(policy, members)
    count = read_count("num_rollouts", num_rollouts, least=2, most=MAX_ROLLOUTS)
    limits = read_limits(None, num_inputs=policy.num_inputs)
    references = references_of(systems, horizon=longest, ends=ends)
    if not ends:
        return estimate_gaps(policy, references, limits, horizons, key=key, num_rollouts=count)
    return [
        estimate_gap(
            policy.for_horizon(horizon),
            shorten(references, sooner=longest - horizon),
            limits,
            key=key,
            num_rollouts=count,
        )
        for horizon in horizons
    ]


def shorten(references: Reference, *, sooner: int) -> Reference:
    """The references of a horizon that ends this many steps sooner; what comes after it costs nothing."""
    K, M = (
        jax.vmap(lambda stack: move_ahead(stack, sooner))(gains) for gains in (references.K, references.M)
    )
    counts = jnp.arange(M.shape[1]) < M.shape[1] - sooner
    return eqx.tree_at(lambda m: (m.K, m.M), references, (K, M * counts[None, :, None, None]))
