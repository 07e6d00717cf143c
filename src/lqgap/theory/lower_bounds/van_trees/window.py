"""What the last instants before an input say, if nobody deviates from the optimal input.

For instants t' < t, with Phi the transition of F, zeta0 the state that deviations do not reach and Pi its
covariance,

    R_{t,t'} = N_t Phi_{t,t'} ,    g_{t,t'} = R_{t,t'+1} G_{t'}   (response of nu_t to x_{t'}) ,
    I_t = sum_{r<t} [ E nu_r nu_r' + 2 gamma_r gamma_r' ]          (Fisher's information before t) ,

and the window of a step are its instants t_0 > t_1 > .. > t_{kappa-1}, the first of them the one before u.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.theory.lower_bounds.van_trees.sensitivity import Sensitivity


class Window(eqx.Module):
    """Of every step; tensors with axes `late`, `early` of places are zero unless early > late."""

    instants: Int[Array, "step place"]
    is_inside: Bool[Array, "step place"]  # not before the first instant
    N: Float[Array, "step place parameter state"]
    gamma: Float[Array, "step place parameter"]
    information: Float[Array, "step place parameter parameter"]  # before each instant
    spread: Float[Array, "step place parameter parameter"]  # E nu nu'
    R: Float[Array, "step late early parameter state"]
    g: Float[Array, "step late early parameter"]
    shared: Float[
        Array, "step late early parameter parameter"
    ]  # E nu_early nu_late' of what was before early
    reach: Float[Array, "step late early parameter input"]  # of a deviation at early to nu at late
    psi: Float[Array, "step place parameter input"]  # response of psi to x


class Exogenous(eqx.Module):
    """Moments of zeta0, and the information it brings, at every instant."""

    Pi: Float[Array, "instant state state"]
    spread: Float[Array, "instant parameter parameter"]
    information: Float[Array, "instant parameter parameter"]


def exogenous_of(system: Sensitivity) -> Exogenous:
    """Covariances of the state without deviations."""

    def advance(Pi: Array, matrices: tuple[Array, Array]) -> tuple[Array, Array]:
        F, G = matrices
        return F @ Pi @ F.T + jnp.outer(G, G), Pi

    _, Pi = jax.lax.scan(advance, jnp.zeros_like(system.F[0]), (system.F, system.G))
    spread = system.N @ Pi @ system.N.mT
    gained = spread + 2 * system.gamma[:, :, None] * system.gamma[:, None, :]
    return Exogenous(Pi, spread, jnp.cumsum(gained, axis=0) - gained)


def windows_of(system: Sensitivity, exogenous: Exogenous, *, length: int) -> Window:
    """The windows of all steps."""
    p, steps = system.num_outputs, len(system.E)
    R, g, psi = _responses(system, length)
    last = jnp.arange(1, steps + 1) * p - 1
    places = jnp.arange(length)
    instants = last[:, None] - places[None, :]
    is_inside = instants >= 0
    at = jnp.maximum(instants, 0)
    lag = (places[None, :] - places[:, None])[None]  # early - late
    is_pair = (lag > 0) & is_inside[:, None, :]
    R_pair = _where(is_pair, R[at[:, :, None], jnp.maximum(lag, 0)])
    at_early = jnp.broadcast_to(at[:, None, :], is_pair.shape)
    shared = jnp.einsum("hjlkx,hjlxy,hjlny->hjlkn", system.N[at_early], exogenous.Pi[at_early], R_pair)
    before = R[at[:, :, None], jnp.maximum(lag - 1, 0)]  # from the state after the deviation
    is_input = is_pair & ((at_early + 1) % p == 0)
    reach = jnp.einsum("hjlkx,hjlxm->hjlkm", before, system.E[at_early // p])
    return Window(
        instants=at,
        is_inside=is_inside,
        N=system.N[at],
        gamma=system.gamma[at],
        information=exogenous.information[at],
        spread=exogenous.spread[at],
        R=R_pair,
        g=_where(is_pair, g[at[:, :, None], jnp.maximum(lag, 0)]),
        shared=shared,
        reach=_where(is_input, reach),
        psi=_where(is_inside, psi),
    )


def _responses(system: Sensitivity, length: int) -> tuple[Array, Array, Array]:
    """R and g of every instant by lag, and the response of psi of every step by place."""
    instants = jnp.arange(len(system.F))
    last = jnp.arange(1, len(system.E) + 1) * system.num_outputs - 1

    def go_back(rows: tuple[Array, Array], lag: Array) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        R, Y = rows  # as seen from the instant after the lag
        early = instants - lag
        F, G = (_where(early >= 0, matrix[jnp.maximum(early, 0)]) for matrix in (system.F, system.G))
        F_step, G_step = F[last], G[last]
        g, psi = jnp.einsum("tkx,tx->tk", R, G), jnp.einsum("hkmx,hx->hkm", Y, G_step)
        after = (R @ F, jnp.einsum("hkmx,hxy->hkmy", Y, F_step))
        return after, (after[0], g, psi)

    start = (system.N, system.Y)
    _, (R, g, psi) = jax.lax.scan(go_back, start, jnp.arange(1, length))
    R = jnp.concatenate([system.N[None], R])
    g = jnp.concatenate([jnp.zeros_like(system.gamma)[None], g])
    psi = jnp.concatenate([system.y[None], psi])
    return jnp.moveaxis(R, 0, 1), jnp.moveaxis(g, 0, 1), jnp.moveaxis(psi, 0, 1)


def _where(mask: Array, values: Array) -> Array:
    return jnp.where(mask.reshape(mask.shape + (1,) * (values.ndim - mask.ndim)), values, 0)
