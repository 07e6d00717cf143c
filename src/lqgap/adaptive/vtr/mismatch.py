"""How far the nearest member is from a plant of the family that is not a member.

Plants are drawn from the family and run under their own optimal controllers, next to the filters of all
members. With m_i and S_i what member i predicts, m and S what is true, and f the means of the true plant's
value target under them, the nearest member i of a plant makes the errors

    resolution^2 = mean_t (f_i - f)^2 ,    slack = | tr S_i^-1 (S + mean_t (m_i - m)(m_i - m)') / p - 1 | ;

the answer is the largest over the plants drawn, times a margin for those that were not.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.evaluation.reference import emit
from lqgap.linalg import solve_psd
from lqgap.simulators import AbstractFamily, Finite
from lqgap.systems import LQG, Optimum, steady_correct, steady_predict, value_target
from lqgap.systems.optimum import solve_members

NUM_PLANTS = 64
NUM_STEPS = 1_000
MARGIN = 1.5


def mismatch(family: AbstractFamily | Finite, members: Finite, *, weighting: str) -> tuple[float, float]:
    """`resolution` and `slack` of a class whose truth may lie between its members."""
    drawn = family.sample(NUM_PLANTS, key=jax.random.key(0), replace=True)
    optima = solve_members(members.systems)
    errors, excess = map(
        np.asarray, _errors(drawn.systems, drawn.optima(), members.systems, optima, weighting)
    )
    nearest = np.argmin(errors, axis=1)[:, None]
    resolution = np.sqrt(np.max(np.take_along_axis(errors, nearest, axis=1)))
    slack = np.max(np.abs(np.take_along_axis(excess, nearest, axis=1)))
    return MARGIN * float(resolution), MARGIN * float(slack)


@eqx.filter_jit
def _errors(
    plants: LQG, optima: Optimum, systems: LQG, member_optima: Optimum, weighting: str
) -> tuple[Array, Array]:
    """Of every plant and member, the mean square error of targets, and the excess of innovations."""
    num_outputs = plants.C.shape[1]
    normals = jax.random.normal(jax.random.key(1), (NUM_STEPS, num_outputs))

    def of_plant(plant: LQG, optimum: Optimum) -> tuple[Array, Array]:
        root = jnp.linalg.cholesky(optimum.S)

        def step(carry: tuple[Array, Array], normal: Array) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
            xhat, others = carry
            u = -optimum.K @ xhat
            predicted = steady_predict(plant, xhat, u)
            target, mean = value_target(optimum, plant, xhat, u), plant.C @ predicted
            beliefs = jax.vmap(lambda member, x: steady_predict(member, x, u))(systems, others)
            means = jax.vmap(lambda member, x: member.C @ x)(systems, beliefs)
            targets = jax.vmap(target.mean)(means, member_optima.S)
            weight = 1 / target.variance(mean, optimum.S) if weighting == "variance" else 1.0
            error = weight * (targets - target.mean(mean, optimum.S)) ** 2
            shift = jax.vmap(lambda m, S: (m - mean) @ solve_psd(S, m - mean))(means, member_optima.S)
            seen = emit(plant.C, optimum.L, root, predicted, normal)
            others = jax.vmap(steady_correct, in_axes=(0, 0, 0, None))(
                member_optima, systems, beliefs, seen.y
            )
            return (seen.xhat, others), (error, shift)

        start = jnp.zeros_like(plant.A[0]), jnp.zeros(systems.A.shape[:2])
        _, (errors, shifts) = jax.lax.scan(step, start, normals)
        spread = jax.vmap(lambda S: jnp.trace(solve_psd(S, optimum.S)))(member_optima.S)
        return jnp.mean(errors, axis=0), (spread + jnp.mean(shifts, axis=0)) / num_outputs - 1

    return jax.vmap(of_plant)(plants, optima)
