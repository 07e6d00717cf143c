"""The filters of several plants for all time: exact from the first observation on, steady in the long run.

    L_t , S_t  of the time-varying filter for t < T ,      L and S of its fixed point from T on

T is the first step at which the covariance of every plant has reached its fixed point up to rounding, in
units of the steady standard deviations, or of a hundredth of the state's own size, X under its own control:

    |Sigma_t - Sigma|_ij <= 1e-10 (D_ii D_jj)^1/2 ,      D = Sigma + 1e-4 X ,
    X = sum_{k <= n} (A - BK)^k (W + S0) (A - BK)^k' .

What is known exactly in the end, as the past inputs of a delay, has a Sigma of rounding alone.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lqgap.arguments import is_concrete
from lqgap.systems.kalman import Belief, correct, plan_filter, predict
from lqgap.systems.lqg import LQG
from lqgap.systems.optimum import Optimum

SETTLED = 1e-10
KNOWN = 1e-4  # of a state's own variance: what is left of it then is as good as nothing
FEWEST, MOST = 16, 2048  # entries of a stack: powers of two between them, so that few programs are compiled
TRACED = 64  # entries where values, and so T, are not known


class FilterGains(eqx.Module):
    """Gains and covariances of innovations; the last entry, which is the steady one, stays for ever."""

    L: Float[Array, "time member state output"]
    S: Float[Array, "time member output output"]
    is_settled: bool = eqx.field(static=True)  # not so where too many steps would be needed


def settle_filters(systems: LQG, optima: Optimum) -> FilterGains:
    """Exact gains until all filters have settled, at most 2047 of them, then the steady ones.

    Under tracing, where it is not known when that is, 63 gains are exact.
    """
    if not is_concrete((systems, optima)):
        return _gains(systems, optima, TRACED, is_settled=True)
    settled = int(settling_time(systems, optima))
    length = 1 if settled == 0 else min(max(FEWEST, 1 << settled.bit_length()), MOST)
    return _gains(systems, optima, length, is_settled=settled < MOST)


@jax.jit
def settling_time(systems: LQG, optima: Optimum) -> Int[Array, ""]:
    """T; as large as a stack of gains may be if some filter does not settle."""
    variance = jnp.diagonal(optima.Sigma + KNOWN * _controlled_covariance(systems, optima), axis1=1, axis2=2)
    size = jnp.sqrt(jnp.maximum(variance, 0))
    unit = size[:, :, None] * size[:, None, :]

    def goes_on(carry: tuple[Array, Array]) -> Array:
        cov, time = carry
        return jnp.any(jnp.abs(cov - optima.Sigma) > SETTLED * unit) & (time < MOST)

    def step(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        cov, time = carry
        return jax.vmap(_next_covariance)(systems, cov), time + 1

    return jax.lax.while_loop(goes_on, step, (systems.S0, jnp.asarray(0)))[1]


def _controlled_covariance(systems: LQG, optima: Optimum) -> Array:
    """X: how large states are in the first steps, as many as there are states."""
    closed = systems.A - systems.B @ optima.K
    X = term = systems.W + systems.S0
    for _ in range(systems.num_states):
        term = closed @ term @ jnp.swapaxes(closed, 1, 2)
        X = X + term
    return X


def _next_covariance(plant: LQG, cov: Array) -> Array:
    after = correct(plant, Belief(jnp.zeros_like(plant.A[0]), cov), jnp.zeros_like(plant.C[:, 0])).belief
    return predict(plant, after, jnp.zeros_like(plant.B[0])).cov


@eqx.filter_jit
def _gains(systems: LQG, optima: Optimum, length: int, *, is_settled: bool) -> FilterGains:
    plans = jax.vmap(lambda plant: plan_filter(plant, num_steps=length), out_axes=1)(systems)
    return FilterGains(L=plans.L.at[-1].set(optima.L), S=plans.S.at[-1].set(optima.S), is_settled=is_settled)
