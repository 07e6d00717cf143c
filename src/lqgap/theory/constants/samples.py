"""Samples of value targets of a class: what LQG-VTR would see, and what every member makes of it.

A run of the stationary controller of one member (the one acted on) on another (the real one) gives at every
step a window eta and a target Y; f_i = E Y by member i. By the features of models and samples
all f_i are one product of two matrices."""

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import IntLike, read_count, read_key
from lqgap.batches import take
from lqgap.evaluation import rollout
from lqgap.policies import StationaryLQG
from lqgap.simulators import Finite
from lqgap.systems import LQG, Optimum, ValueTarget, arx_matrix, arx_window, steady_beliefs, value_target


class Samples(eqx.Module):
    """Windows, the targets of the models acted on, and f of every member at every sample."""

    window: Float[Array, "sample window"]
    target: ValueTarget  # with a leading axis of samples
    values: Float[Array, "member sample"]


def draw_samples(
    members: Finite, *, length: IntLike, num_runs: IntLike, num_steps: IntLike, key: PRNGKeyArray
) -> Samples:
    """The last num_steps samples of each of num_runs runs of random pairs of members."""
    length = read_count("length", length, least=1)
    num_runs, num_steps = (
        read_count("num_runs", num_runs, least=1),
        read_count("num_steps", num_steps, least=1),
    )
    key_pairs, key_runs = jax.random.split(read_key(key))
    pairs = jax.random.randint(key_pairs, (num_runs, 2), 0, len(members))
    optima, systems = members.optima(), members.systems
    window, target = _runs(optima, systems, pairs, jax.random.split(key_runs, num_runs), length, num_steps)
    return Samples(window, target, target_means(optima, systems, window, target, length=length))


@eqx.filter_jit
def target_means(
    optima: Optimum, systems: LQG, window: Float[Array, "sample window"], target: ValueTarget, *, length: int
) -> Float[Array, "member sample"]:
    """f of every member of a batch at every sample."""

    def of_member(member: tuple[Optimum, LQG]) -> Array:
        N, S = arx_matrix(*member, length=length), member[0].S
        return jax.vmap(lambda eta, goal: goal.mean(N @ eta, S))(window, target)

    return jax.lax.map(of_member, (optima, systems))


@eqx.filter_jit
def _runs(
    optima: Optimum, systems: LQG, pairs: Array, keys: Array, length: int, num_steps: int
) -> tuple[Array, ValueTarget]:
    def run(argument: tuple[Array, Array]) -> tuple[Array, ValueTarget]:
        pair, key = argument
        optimum, acted_on = take((optima, systems), pair[0])
        real = take(systems, pair[1])
        policy = StationaryLQG(acted_on, filters="steady")
        trajectory = rollout(policy, real, horizon=length + num_steps - 1, key=key)
        beliefs = steady_beliefs(optimum, acted_on, trajectory.y, trajectory.u)
        windows = arx_window(trajectory.y, trajectory.u, length=length)
        targets = jax.vmap(lambda xhat, u: value_target(optimum, acted_on, xhat, u))(beliefs, trajectory.u)
        return jax.tree.map(lambda leaf: leaf[length:], (windows, targets))

    answer = jax.lax.map(run, (pairs, keys))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), answer)
