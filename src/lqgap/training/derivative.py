"""How the weighted gap changes with the parameters of a policy, in two ways.

*Pathwise*: through the rollouts. Precise, but blind to what a hard choice between members would gain, since
a rollout that does not switch has no derivative with respect to switching; and loops that adapt amplify it.

*Smoothed*: the derivative of the gap averaged over a Gaussian cloud of parameters, p + s e with e ~ N(0, I),

    E[ (gap(p + s e) - gap(p - s e)) e ] / (2 s) ,

with both gaps on the same noise and another e for each rollout. Nothing has to be differentiable, but it is
noisy: it polishes what the other has found.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.evaluation.monte_carlo import rollout_keys
from lqgap.policies import AbstractPolicy
from lqgap.training.objective import AbstractObjective, SampledObjective

LARGEST = 5.0  # times the mean gap: rollouts beyond it would drown all others in the smoothed derivative


def pathwise(
    objective: AbstractObjective,
    parameters: Any,
    frozen: Any,
    weights: Float[Array, " member"],
    key: Array,
    *,
    num_rollouts: int,
) -> tuple[Float[Array, " member"], Any]:
    """Gaps, and the derivative of their weighted sum through the rollouts."""

    def loss(parameters: Any) -> tuple[Array, Array]:
        policy: AbstractPolicy = eqx.combine(parameters, frozen)
        gaps = objective.gaps(policy, key, num_rollouts)
        return weights @ gaps, gaps

    (_, gaps), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(parameters)
    return gaps, gradient


def smoothed(
    objective: SampledObjective,
    parameters: Any,
    frozen: Any,
    weights: Float[Array, " member"],
    key: Array,
    *,
    num_rollouts: int,
    spread: Any,
) -> tuple[Float[Array, " member"], Any]:
    """Gaps nearby, and the derivative of their weighted sum over a cloud of parameters.

    Args:
        spread: of the cloud, for every array of the parameters.
    """
    key_noise, key_cloud = jax.random.split(key)
    leaves, structure = jax.tree.flatten(parameters)
    draws = jax.tree.unflatten(
        structure,
        [
            jax.random.normal(k, (num_rollouts, *leaf.shape), leaf.dtype)
            for k, leaf in zip(jax.random.split(key_cloud, len(leaves)), leaves, strict=True)
        ],
    )
    offsets = jax.tree.map(lambda s, e: jnp.broadcast_to(s, e.shape[1:])[None] * e, spread, draws)
    cloud = jax.tree.map(lambda p, d: p[None] + jnp.concatenate([d, -d]), parameters, offsets)
    # Both sides in one batch: two loops in one program may wait for each other (docs/decisions/0005).
    keys = [jnp.tile(k, 2) for k in rollout_keys(key_noise, jnp.arange(num_rollouts))]
    totals = objective.totals(lambda own: eqx.combine(own, frozen), cloud, (keys[0], keys[1]))
    gaps = jnp.mean(totals, axis=1)
    up, down = jnp.split(jnp.minimum(totals, LARGEST * gaps[:, None]), 2, axis=1)
    change = weights @ (up - down)
    gradient = jax.tree.map(
        lambda e, s: jnp.tensordot(change, e, axes=1) / (2 * s * num_rollouts), draws, spread
    )
    return gaps, gradient
