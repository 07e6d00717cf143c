"""The second moment of the test function, if nobody deviates, and what deviations change in it.

For one row of a test (one step h, one input) with a_j(theta) in R^q and b_j = div(mu a_j)/mu at the places j
of the window, chi = clip(x), W_{<j} = sum_{l>j} a_l chi_l (what is earlier) and the score s:

    v = sum_j D_j ,    Q1 = a_j.s_{before t_j} + b_j ,    Q2 = W_{<j}.nu_j ,
    D_j = chi_j Q1 + x_j Q2 + (a_j.gamma_j) third(x_j)
          + (x_j^2 - 1) W_{<j}.gamma_j + (chi_j x_j - chi'_j) a_j.nu_j .

Given what was before t_j every term has mean zero, and the first three are odd in x_j, the others even: so
E v^2 = sum_j E D_j^2, a sum of moments of independent normal variables (`clipping` has their names).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.theory.lower_bounds.van_trees.clipping import ClippedNormal
from lqgap.theory.lower_bounds.van_trees.window import Window


class Row(eqx.Module):
    """The coefficients of one row of a test, zero outside of the record."""

    a: Float[Array, "place parameter"]
    b: Float[Array, " place"]


class SecondMoment(eqx.Module):
    """E v^2, and E Q2^2 at every place."""

    total: Float[Array, ""]
    products: Float[Array, " place"]


def second_moment(row: Row, window: Window, chi: ClippedNormal) -> SecondMoment:
    """Without deviations, for one step and input."""
    a, b, g = row.a, row.b, window.g
    X = chi.product * jnp.einsum("lk,jln->jkn", a, g)  # E W_{<j} nu_j'
    trace = jnp.trace(X, axis1=1, axis2=2)
    earlier = jnp.tril(jnp.ones((len(a), len(a))), -1).T  # late, early
    W_nu = jnp.einsum("jl,lk,jkn,ln->j", earlier, a, window.spread, a)
    hits = jnp.einsum("lk,jlk->jl", a, g)  # a_l . g_{j,l}
    products = (
        chi.square * W_nu + trace**2 + jnp.einsum("jkn,jnk->j", X, X) + chi.fourth * jnp.sum(hits**2, axis=1)
    )
    # E (a_j.s)(W_{<j}.nu_j): the score at l meets chi_l, or by g nu_j, while an earlier chi_r meets nu_l.
    score = (
        chi.product * jnp.einsum("jk,jlkn,ln->j", a, window.shared, a)
        + chi.product * jnp.einsum("jk,lrk,rn,jln->j", a, g, a, g)
        + chi.cubic * jnp.einsum("jk,lk,jl->j", a, window.gamma, hits)
    )
    own = jnp.sum(a * window.gamma, axis=1)
    W_gamma = jnp.einsum("jl,lk,jk->jl", earlier, a, window.gamma)
    at_j = jnp.einsum("jk,jlk->jl", a, g)  # a_j . g_{j,l}
    total = (
        chi.square * (jnp.einsum("jk,jkn,jn->j", a, window.information, a) + b**2)
        + products
        + 2 * chi.product * (score + b * trace)
        + chi.own * own**2
        + 2 * own * (chi.own_square * b + chi.own_product * trace)
        + 2 * chi.square * jnp.sum(W_gamma**2, axis=1)
        + chi.stein * jnp.einsum("jk,jkn,jn->j", a, window.spread, a)
        + 2 * chi.even * chi.product * jnp.sum(W_gamma * at_j, axis=1)
    )
    return SecondMoment(jnp.sum(total), jax.nn.relu(products))


class Effects(eqx.Module):
    """What deviations change in E v^2 of one row, by place l in the window (see `deviations`)."""

    outer: Float[Array, "place parameter parameter"]
    exact: Float[Array, "place state state"]
    young: Float[Array, "place state state"]
    lags: Float[Array, "place lag state"]
    sup: Float[Array, " place"]
    size: Float[Array, " place"]


def effects_of(row: Row, window: Window, chi: ClippedNormal) -> Effects:
    """Coefficients of the linear-quadratic problem that one row of a test brings.

    exact   of E x'(.)eta and E eta'(.)eta: kx^2 sum_j sym(nw_j b_j')          (the score meets Y2)
    young   kk sum_j b_j b_j', which eta' . eta has 1 + z times                (Y2 by itself, Y1 by Young)
    lags    of E chi_{t-i} (.) eta
    sup     sum_j c_{j,l} sum_s c_{j,s}                                        (E Y1^2)
    size    sum_j ||l_t||                                                       (linear terms with Y1)
    """
    a, b, g = row.a, row.b, window.g
    kk, kx = chi.square, chi.product
    length = len(a)
    earlier = jnp.tril(jnp.ones((length, length)), -1).T
    direct = jnp.einsum("lk,jlkx->jlx", a, window.R)  # a_l'R_{j,l}
    through = jnp.einsum("jl,jk,lkx->jlx", earlier, a, window.N)  # a_j'N_l
    mixed = jnp.einsum("jlx,jly->lxy", through, direct)
    young = kk * jnp.einsum("jlx,jly->lxy", direct, direct)
    hits = jnp.einsum("rk,jlk,lr->jlr", a, g, earlier)  # a_r . g_{j,l}, r earlier than l
    cross = kx * jnp.einsum("jlr,jlx->lrx", hits, direct + through)
    own = jnp.sum(a * window.gamma, axis=1)
    cross += jnp.einsum("l,rk,lkx,lr->lrx", kx * b + chi.own_product * own, a, window.N, earlier)
    cross += chi.even * jnp.einsum("rk,lk,ln,lnx,lr->lrx", a, window.gamma, a, window.N, earlier)
    places = jnp.arange(length)
    lags = jax.vmap(lambda row, place: jnp.roll(row, -place - 1, axis=0)[:-1])(cross, places)
    lags = jnp.where((places[None, :-1] < length - 1 - places[:, None])[:, :, None], lags, 0)
    # Y1: at places l that an input follows; the earlier sum over r >= l.
    meets = jnp.einsum("rk,jlkm->jlrm", a, window.reach) * (earlier + jnp.eye(length))[None, :, :, None]
    sizes = _norm(meets)
    c = chi.level * jnp.sum(sizes, axis=2)
    variance = jnp.sqrt(jnp.maximum(kk * jnp.sum(sizes**2, axis=2), 1e-300))
    first = jnp.broadcast_to(window.information[-1], window.information.shape)
    before, inside = (
        _root(jnp.einsum("jk,jkn,jn->j", a, form, a)) for form in (first, window.information - first)
    )
    products = _root(second_moment(row, window, chi).products)
    size = kx * before[:, None] * variance + c * (kx * inside + products)[:, None]
    return Effects(
        outer=a[:, :, None] * a[:, None, :],
        exact=kx**2 * (mixed + mixed.mT),
        young=young,
        lags=lags,
        sup=jnp.sum(c * jnp.sum(c, axis=1, keepdims=True), axis=0),
        size=jnp.sum(size, axis=0),
    )


def _root(values: Array) -> Array:
    return jnp.sqrt(jnp.maximum(values, 1e-300))


def _norm(vectors: Array) -> Array:
    return _root(jnp.sum(vectors**2, axis=-1))
