"""Steps of limited memory BFGS for all that is free in a bound but the shares, which follow every step.

Coordinates are those in which the first field's forms are the unit: y_h = G_h' c_h for the coefficients of
step h, with Cholesky factors G G' of the forms. A step counts if the bound with new shares is larger; if not,
a shorter one is tried. The derivative is that at fixed shares: where they are the best ones, it is that of
the bound.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from lqgap.progress import is_spent
from lqgap.theory.lower_bounds.van_trees.fields import Basis, Prior
from lqgap.theory.lower_bounds.van_trees.nodes import Nodes
from lqgap.theory.lower_bounds.van_trees.search import AT_ONCE, Choice, Found, find_shares, mean_value

MEMORY = 12  # pairs of steps and changes of the slope
FIRST = 0.02  # of the slope, for the first step
UNITS = (4.0, 2.0)  # of the prior's numbers, and of the logarithms: of the size of steps that pass
LONGEST = (0.15, 0.06)  # step of the prior's numbers, and of the logarithms of level and constants
SHORTER, TRIES = 0.3, 6  # factor of a step that failed, and how often
LEAST_GAIN, PATIENCE = 4e-3, 6  # the search ends when so many steps gained less than this, relatively
BY_THEN = 0.6  # of a budget of time the search ends: the bound it found must still be integrated


class Pair(NamedTuple):
    """A step, and by how much it lowered the slope."""

    step: np.ndarray
    change: np.ndarray


def climb(
    choice: Choice,
    found: Found,
    factors: Float[Array, "step row row"],
    nodes: Nodes,
    basis: Basis,
    *,
    iterations: int,
    advance: Callable[..., Any] = lambda *_: None,
) -> tuple[Choice, Found]:
    """A choice with a bound at least as large, after so many steps or when they gain no more.

    Args:
        advance: told of every step, and how large the bound is.
    """
    pairs: deque[Pair] = deque(maxlen=MEMORY)
    reached = [found.mean]
    slope = np.asarray(slope_at(choice, found.shares, factors, nodes, basis))
    for _ in range(iterations):
        if is_spent(BY_THEN):
            break
        advance(1, f"at {reached[-1]:.3g}")
        direction = ascent(slope, pairs)

        def try_step(length: float, choice=choice, shares=found.shares, direction=direction):
            trial = moved(choice, jnp.asarray(length * direction), factors)
            return trial, find_shares(trial, nodes, basis, shares[None])

        step = _search_line(try_step, found.mean, direction, slope, num_prior=2 * nodes.z.shape[1])
        if step is None and not pairs:
            break
        if step is None:
            pairs.clear()
            continue
        length, choice, found = step
        before, slope = slope, np.asarray(slope_at(choice, found.shares, factors, nodes, basis))
        pair = Pair(length * direction, before - slope)
        if pair.step @ pair.change > 0:
            pairs.append(pair)
        reached.append(found.mean)
        if len(reached) > PATIENCE and reached[-1] < (1 + LEAST_GAIN) * reached[-1 - PATIENCE]:
            break
    return choice, found


def ascent(slope: Float[np.ndarray, " free"], pairs: deque[Pair]) -> Float[np.ndarray, " free"]:
    """The slope times the inverse curvature that the pairs imply (two-loop recursion)."""
    direction, weights = slope, []
    for step, change in reversed(pairs):
        weights.append((step @ direction) / (step @ change))
        direction = direction - weights[-1] * change
    last = pairs[-1] if pairs else None
    direction = direction * (
        FIRST if last is None else (last.step @ last.change) / (last.change @ last.change)
    )
    for (step, change), weight in zip(pairs, reversed(weights), strict=True):
        direction = direction + (weight - (change @ direction) / (step @ change)) * step
    return direction


def slope_at(
    choice: Choice, shares: Float[Array, "node step"], factors: Array, nodes: Nodes, basis: Basis
) -> Float[np.ndarray, " free"]:
    """The derivative of the bound at given shares, in the coordinates of steps."""
    # Few nodes at a time: that of all of them takes gigabytes.
    parts = np.array_split(np.arange(len(nodes)), math.ceil(len(nodes) / AT_ONCE[nodes.z.shape[1]]))
    slopes = [_slope_of(choice, shares, factors, nodes, basis, jnp.asarray(part)) for part in parts]
    return np.sum(slopes, axis=0)


@eqx.filter_jit
def moved(choice: Choice, step: Float[Array, " free"], factors: Array) -> Choice:
    """The choice after a step."""
    parts = ravel_pytree(choice)[1](step)
    change = _scaled(parts, jax.vmap(_solve_upper)(factors, parts.coefficients))
    return jax.tree.map(jnp.add, choice, change)


@eqx.filter_jit
def _slope_of(
    choice: Choice, shares: Array, factors: Array, nodes: Nodes, basis: Basis, some: Array
) -> Array:
    slope = jax.grad(mean_value)(choice, shares, nodes, basis, some)
    return ravel_pytree(_scaled(slope, jax.vmap(_solve_lower)(factors, slope.coefficients)))[0]


def _search_line(
    try_step: Callable[[float], tuple[Choice, Found]],
    value: float,
    direction: np.ndarray,
    slope: np.ndarray,
    *,
    num_prior: int,
) -> tuple[float, Choice, Found] | None:
    """The first of ever shorter steps that gains enough, if there is one."""
    prior, rest = direction[-num_prior - 4 : -4], direction[-4:]
    moves = (unit * np.max(np.abs(part)) for unit, part in zip(UNITS, (prior, rest), strict=True))
    length = min(1.0, *(most / (move + 1e-12) for most, move in zip(LONGEST, moves, strict=True)))
    for _ in range(TRIES):
        choice, found = try_step(length)
        if found.is_finite and found.mean > value + 1e-4 * length * (slope @ direction):
            return length, choice, found
        length *= SHORTER
    return None


def _scaled(choice: Choice, coefficients: Array) -> Choice:
    of_prior, of_rest = UNITS
    prior = Prior(of_prior * choice.prior.tilt, of_prior * choice.prior.bend)
    return Choice(coefficients, prior, of_rest * choice.log_level, of_rest * choice.log_young)


def _solve_lower(factor: Array, b: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(factor, b.ravel(), lower=True).reshape(b.shape)


def _solve_upper(factor: Array, b: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(factor.T, b.ravel(), lower=False).reshape(b.shape)
