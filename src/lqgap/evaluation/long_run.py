"""A policy that goes on, over many horizons, by the program of one.

A rollout of a horizon ends in a state, from which the next one starts. From the second horizon on the plant's
filter counts as settled: its gain stays as it was at the end of the first.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import IntLike, read_count, read_key
from lqgap.evaluation.arguments import read_horizon, read_systems
from lqgap.evaluation.gap import begin_block, pad_marks, references_of, run_block
from lqgap.evaluation.reference import Reference
from lqgap.policies import AbstractPolicy
from lqgap.policies.limits import LimitsLike, read_limits
from lqgap.progress import is_spent
from lqgap.simulators.finite import Members


def excess_in_the_long_run(
    policy: AbstractPolicy,
    members: Members,
    *,
    horizon: IntLike,
    num_horizons: IntLike,
    key: PRNGKeyArray,
    num_rollouts: IntLike = 64,
    limits: LimitsLike = None,
) -> Float[np.ndarray, "number member rollout"]:
    """What each of several horizons in turn costs above the optimum; infinite where it diverges.

    A budget of time that ends leaves fewer horizons, two at least.

    Args:
        horizon: each has steps 0..horizon.
        num_rollouts: of every member, all at a time.
    """
    horizon, key = read_horizon(policy, horizon), read_key(key)
    num_horizons = read_count("num_horizons", num_horizons, least=1, most=100_000)
    read_horizon(policy, num_horizons * (horizon + 1) - 1)
    systems = read_systems(policy, members)
    indices = jnp.arange(read_count("num_rollouts", num_rollouts, least=1, most=100_000))
    allowed = read_limits(limits, num_inputs=policy.num_inputs)
    references = references_of(systems, horizon=horizon, ends=False)
    states = begin_block(policy, references, key, indices)
    marks, is_counted, found = pad_marks([horizon]), indices >= 0, []
    for number in range(num_horizons):
        if number > 1 and is_spent():
            break
        noise = jax.random.fold_in(key, number)
        block = run_block(policy, references, allowed, noise, indices, is_counted, marks, states)
        found.append(np.asarray(block.totals)[0])
        references, states = _settled(references), block.states
    return np.stack(found)


def _settled(references: Reference) -> Reference:
    """With the filters' last gains at all steps."""

    def repeat(stack: Array) -> Array:
        return jax.device_put(np.broadcast_to(np.asarray(stack)[:, -1:], stack.shape))

    return eqx.tree_at(lambda r: (r.L, r.S_root), references, replace_fn=repeat)
