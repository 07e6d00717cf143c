"""The bound of one choice of all that is free, and a choice to start from.

Free are the coefficients of the field, the prior, the level of the clip, the constants of Young's
inequalities and, at every plant, the shares lambda. Whatever is chosen, the mean over the prior of

    Val(theta) = sum_h [ 2 kx sum_l psi_{h,l}.a_{h,l} - E v_h^2 / lambda_h ] + best deviation

is a lower bound; so the search may be as rough as it likes. It starts from the field that is best if nobody
deviates (a linear system per step, regularised as if more were known about the parameters), and `climbing`
goes on from there. The shares follow by passes of `better_share`.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lqgap.states import strongly_typed
from lqgap.theory.lower_bounds.van_trees.clipping import clipped_normal
from lqgap.theory.lower_bounds.van_trees.deviations import (
    MARGIN,
    Problem,
    Young,
    best_deviation,
    better_share,
    known_covariance,
)
from lqgap.theory.lower_bounds.van_trees.fields import Basis, Prior
from lqgap.theory.lower_bounds.van_trees.moments import Row, effects_of, second_moment
from lqgap.theory.lower_bounds.van_trees.nodes import Nodes
from lqgap.theory.lower_bounds.van_trees.window import Window

FAILED = -1e9  # in place of minus infinity, with which JAX's derivatives cannot live
FACTORS = (0.6, 1.0, 1.6)  # of one pass of shares
MORE_KNOWN, STEPS_KNOWN = 0.05, 6.0  # information added for the first field: relative, and in steps
SCALES = (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85)  # of the first field, tried in turn while the bound grows
AT_ONCE = {1: 8, 2: 7}  # nodes by free parameters: parts of equal size


class Choice(eqx.Module):
    """All that is free, but for the shares."""

    coefficients: Float[Array, "step place input function"]
    prior: Prior
    log_level: Float[Array, ""]
    log_young: Float[Array, " three"]

    def scale(self, factor: float) -> "Choice":
        """The same with a smaller field."""
        return eqx.tree_at(lambda choice: choice.coefficients, self, self.coefficients * factor)


class Found(eqx.Module):
    """Shares, and the value of the bound's integrand at every node."""

    shares: Float[Array, "node step"]
    values: Float[Array, " node"]
    weights: Float[Array, " node"]

    @property
    def is_finite(self) -> bool:
        """Whether there is a bound at every node."""
        return bool(jnp.all(self.values > FAILED))

    @property
    def mean(self) -> float:
        """Over the prior."""
        return float(self.weights @ self.values)


def find_shares(
    choice: Choice, nodes: Nodes, basis: Basis, starts: Float[Array, "start node step"], *, rounds: int = 1
) -> Found:
    """From the better of one or two starts, rounds of passes of every factor; at each node by itself."""
    two = jnp.concatenate([starts, starts])[:2]  # one program for all calls
    return _find_shares(choice, nodes, basis, two, jnp.asarray(rounds))


def mean_value(
    choice: Choice,
    shares: Float[Array, "node step"],
    nodes: Nodes,
    basis: Basis,
    some: Int[Array, " some"] | None = None,
) -> Float[Array, ""]:
    """The bound at given shares, where it is finite: a smooth function of the choice.

    Args:
        some: nodes, whose part of the bound it is; all if left out.
    """

    def value(node: Nodes, share: Array) -> Array:
        problem, gained, spent = _problem(choice, node, basis)
        deviation = best_deviation(problem, share, Young(*jnp.exp(choice.log_young)))
        return jnp.sum(gained - spent / share) + deviation.value

    weights = _weights(choice.prior, nodes)
    if some is not None:
        weights, nodes, shares = jax.tree.map(lambda leaf: leaf[some], (weights, nodes, shares))
    return weights @ jax.vmap(value)(nodes, shares)


def first_choice(
    nodes: Nodes, basis: Basis, *, level: float, young: tuple[float, float, float]
) -> tuple[Choice, Found, Float[Array, "step row row"]]:
    """A field by linear systems, scaled until the bound no longer grows; and the systems' factors."""
    q = nodes.z.shape[1]
    prior = Prior(jnp.zeros(q), jnp.zeros(q))
    coefficients, factors = _solve_field(prior, jnp.asarray(level), nodes, basis)
    whole = strongly_typed(Choice(coefficients, prior, jnp.log(level), jnp.log(jnp.asarray(young))))
    steps = nodes.turn.shape[1]
    profile = 1 - jnp.linspace(0, 1, steps) ** 2
    starts = jnp.stack([1 - price * (0.05 + 0.95 * profile) for price in (0.4, 0.7)])
    starts = jnp.broadcast_to(starts[:, None], (2, len(nodes), steps))
    best: tuple[Choice, Found] | None = None
    for scale in SCALES:
        choice = whole.scale(scale)
        found = find_shares(choice, nodes, basis, starts)
        if not found.is_finite or (best and found.mean <= best[1].mean):
            break
        best = (choice, found)
        starts = found.shares[None]
    if best is None:
        choice = whole.scale(0.0)
        best = (choice, find_shares(choice, nodes, basis, starts))
    return *best, factors


@eqx.filter_jit
def _find_shares(choice: Choice, nodes: Nodes, basis: Basis, starts: Array, rounds: Array) -> Found:
    young = Young(*jnp.exp(choice.log_young))

    def at_node(given: tuple[Problem, Array, Array], starts: Array) -> tuple[Array, Array]:
        problem, gained, spent = given

        def value_of(share: Array) -> Array:
            found = best_deviation(problem, share, young)
            value = jnp.sum(gained - spent / share) + found.value
            return jnp.where((found.margin > MARGIN) & jnp.isfinite(value), value, FAILED)

        def improve(number: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
            share, value = best
            factor = jnp.asarray(FACTORS)[number % len(FACTORS)]
            other = better_share(problem, share, young, spent / share**2 + 1e-12, factor)
            trials = jnp.stack([other, (share + other) / 2])
            values = jnp.concatenate([value[None], jax.vmap(value_of)(trials)])
            shares = jnp.concatenate([share[None], trials])
            return shares[jnp.argmax(values)], jnp.max(values)

        values = jax.vmap(value_of)(starts)
        best = (starts[jnp.argmax(values)], jnp.max(values))
        return jax.lax.fori_loop(0, rounds * len(FACTORS), improve, best)

    # Few nodes at a time: their tensors then stay in the cache.
    problems = jax.lax.map(
        lambda node: _problem(choice, node, basis), nodes, batch_size=AT_ONCE[nodes.z.shape[1]]
    )
    found, values = jax.vmap(at_node, in_axes=(0, 1))(problems, starts)
    return Found(found, values, _weights(choice.prior, nodes))


def _problem(choice: Choice, node: Nodes, basis: Basis) -> tuple[Problem, Array, Array]:
    """The linear-quadratic problem of one node, and what the tests of every step gain and spend."""
    chi = clipped_normal(jnp.exp(choice.log_level))
    functions = basis(node.z, choice.prior)
    coefficients = choice.coefficients * node.window.is_inside[:, :, None, None]
    rows = jnp.einsum("hij,hljb,bk->hilk", node.turn, coefficients, functions)

    def of_input(row: Array, window: Window) -> tuple[Any, Array]:
        coefficients = Row(row[:, :-1], row[:, -1])
        return effects_of(coefficients, window, chi), second_moment(coefficients, window, chi).total

    each = jax.vmap(jax.vmap(of_input, in_axes=(0, None)))(rows, node.window)
    effects, spent = jax.tree.map(partial(jnp.sum, axis=1), each)
    a = rows[..., :-1]
    gained = 2 * chi.product * jnp.einsum("hilk,hlki->h", a, node.window.psi)
    pull = jnp.einsum("hilk,hkix->hlx", a, node.system.Y)[:, 1:]
    length = coefficients.shape[1]
    covariance = known_covariance(node.system, chi, length=length)
    return Problem(node.system, chi, effects, pull, covariance), gained, spent


def _weights(prior: Prior, nodes: Nodes) -> Array:
    log_density = jax.vmap(prior.log_density)(nodes.z)
    weights = nodes.weight * jnp.exp(log_density - jnp.max(log_density))
    return weights / jnp.sum(weights)


@eqx.filter_jit
def _solve_field(prior: Prior, level: Array, nodes: Nodes, basis: Basis) -> tuple[Array, Array]:
    """For every step the coefficients c that maximise 2 g.c - c'Hc, if nobody deviates."""
    chi = clipped_normal(level)
    q, length = nodes.z.shape[1], nodes.window.N.shape[2]
    functions = jax.vmap(lambda z: basis(z, prior))(nodes.z)
    weights = _weights(prior, nodes)
    window = nodes.window
    gained = jnp.mean(
        window.spread[:, :, 0] + 2 * window.gamma[:, :, 0, :, None] * window.gamma[:, :, 0, None, :], axis=1
    )

    def form(window: Window, gained: Array) -> Array:
        def total(row: Array) -> Array:
            return second_moment(Row(row[:, :q], row[:, q]), window, chi).total

        matrix = jax.hessian(total)(jnp.zeros((length, q + 1))) / 2
        known = chi.square * (MORE_KNOWN * window.information + STEPS_KNOWN * gained[None])
        places = jnp.arange(length)
        return matrix.at[places, :q, places, :q].add(known)

    def of_step(window: Window, turn: Array) -> tuple[Array, Array]:
        forms = jax.vmap(form)(window, gained)
        inside = window.is_inside[0].astype(float)
        both = jnp.einsum("nij,nik->njk", turn, turn)
        H = jnp.einsum("n,nbx,nlxmy,ncy,njk->ljbmkc", weights, functions, forms, functions, both)
        H = jnp.einsum("ljbmkc,l,m->ljbmkc", H, inside, inside)
        g = jnp.einsum("n,nlki,nij,nbk->ljb", weights, window.psi, turn, functions[:, :, :q])
        size = g.size
        H = H.reshape(size, size)
        typical = jnp.trace(H) / size
        H = H + typical * jnp.diag(1e-10 + jnp.repeat(1 - inside, size // length))
        factor = jnp.linalg.cholesky(H)
        g = chi.product * g * inside[:, None, None]
        return jax.scipy.linalg.cho_solve((factor, True), g.ravel()).reshape(g.shape), factor

    by_step = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (window, nodes.turn))
    return jax.lax.map(lambda given: of_step(*given), by_step)
