"""A lower bound of the gap over the ranges of a family, by van Trees' inequality (docs/lower_bound.md).

    sup over theta of Gap_theta >= E_mu Gap_theta >= E_mu Val(theta)        for every policy,

with a prior mu on the box of the parameters, a field that vanishes at its faces, and a linear-quadratic
problem at every theta. lambda(theta), the only part of Val that is not a formula, is what a fixed algorithm
finds at theta: two starts, then passes of `search.find_shares`. It is a function on the whole box.

    proved     the inequality, for every choice of what is free
    computed   the integral over theta, in double precision: by two Gauss-Legendre rules other than the one on
               which the choice was made, the smaller value less their difference; for more than three
               parameters by a random sample, as a lower confidence limit ("statistical")
    searched   the choice itself

It bounds the ranges. A finite class inside of them inherits nothing: its members may be told apart at once.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, read_count
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.simulators.building import Branch
from lqgap.simulators.family import AbstractFamily
from lqgap.theory.lower_bounds.van_trees.fields import Basis, gauss_rule, make_basis
from lqgap.theory.lower_bounds.van_trees.nodes import Box, Nodes, box_of, make_nodes
from lqgap.theory.lower_bounds.van_trees.search import (
    FAILED,
    Choice,
    Found,
    Strides,
    climb,
    find_shares,
    first_choice,
)

MAX_HORIZON = 1000
MAX_PARAMETERS = 6
POINTS = {1: (16, 23, 29), 2: (7, 9, 11), 3: (5, 6, 7)}  # by parameters: to choose on, and of the two rules
SAMPLE = 128  # of more than three parameters
CONFIDENCE = 0.999
MEMORY = {1: 8, 2: 6}  # instants of a window by parameters, for one output; with several by outputs
LEVEL, YOUNG = 1.5, (0.5, 0.4, 0.2)  # to start from
SHRINK, MOST_SHRINKS = 0.95, 12  # of the field, where a finer rule finds a place without a bound


class VanTrees(eqx.Module):
    """No policy whatever has a smaller worst gap over the ranges than `value`.

    `spread` is the difference of two rules for the integral over the parameters, already taken off; with a
    random sample in their place `confidence` is below one, and `value` a lower confidence limit.
    """

    value: float
    spread: float
    confidence: float
    prior: str = eqx.field(static=True)
    reasons: tuple[str, ...] = eqx.field(static=True)
    choice: Choice
    kind: str = eqx.field(static=True, default="van-trees")


def van_trees_bound(
    family: AbstractFamily,
    *,
    horizon: IntLike,
    ends: bool = True,
    iterations: IntLike = 40,
    progress: Callable[..., None] | None = None,
) -> VanTrees:
    """The bound of a family whose parameters are intervals that fill a box, over steps 0..horizon.

    Args:
        ends: whether the task ends at the horizon; if not, the state left then counts.
        iterations: most steps of the search; any number gives a bound.
        progress: called with 1 after every step.
    """
    horizon = read_count("horizon", horizon, least=1, most=MAX_HORIZON)
    iterations = read_count("iterations", iterations, least=0, most=100_000)
    branch = _only_branch(family)
    return _bound_of(branch, horizon, ends, iterations, progress)


def _only_branch(family: AbstractFamily) -> Branch:
    low, high = family.branches[0].ends
    count = int(np.sum(high > low))
    if len(family.branches) > 1 or count == 0:
        raise InvalidArgumentError("family has parameters that are no intervals (see `ranges.boxes_of`)")
    if count > MAX_PARAMETERS:
        raise InvalidArgumentError(
            f"family has {count} parameters, {MAX_PARAMETERS} at most can be integrated over"
        )
    if not family.is_traceable:
        raise InvalidArgumentError("family has a `build` that JAX cannot differentiate")
    return family.branches[0]


def _bound_of(
    branch: Branch, horizon: int, ends: bool, iterations: int, progress: Callable[..., None] | None
) -> VanTrees:
    box = box_of(branch)
    q = len(box.low)
    basis = make_basis(q)
    rules = _rules(q)
    points, weights = rules[0]
    p = box.plant(jnp.zeros(q)).C.shape[0]
    length = MEMORY.get(q, 6) if p == 1 else min(2 * p + 4, 12)
    batch = Batch(box, len(points), horizon, ends, length)
    nodes = batch.nodes(points, weights)
    choice, found, factors = first_choice(nodes, basis, level=LEVEL, young=YOUNG)
    if not found.is_finite:
        raise NotConvergedError("the linear-quadratic problem has no solution even without a field")
    strides = Strides(*map(jnp.asarray, (0.3, 0.3, 0.1)))
    for _ in range(iterations):
        choice, found, is_better = climb(choice, found, factors, nodes, basis, strides)
        strides = strides.after(is_better)
        if progress is not None:
            progress(1)
    return _integrate(choice, found, batch, basis, rules[1:])


def _rules(q: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The points and weights to choose on, and those of the integral."""
    if q in POINTS:
        return [gauss_rule(q, count) for count in POINTS[q]]
    random = np.random.default_rng(0)
    sobol = scipy.stats.qmc.Sobol(q, rng=random).random(SAMPLE)
    even = np.full(SAMPLE, 1 / SAMPLE)
    return [
        (2 * sobol - 1, even),
        (2 * random.random((4 * SAMPLE, q)) - 1, np.full(4 * SAMPLE, 1 / (4 * SAMPLE))),
    ]


class Batch(eqx.Module):
    """Nodes are prepared and judged so many at a time, by one program."""

    box: Box
    size: int
    horizon: int
    ends: bool
    length: int

    def nodes(self, points: np.ndarray, weights: np.ndarray) -> Nodes:
        """Of at most `size` points, the last of which fills the batch up, without weight."""
        rows = np.minimum(np.arange(self.size), len(points) - 1)
        weights = np.where(np.arange(self.size) < len(points), weights[rows], 0.0)
        return make_nodes(
            self.box,
            jnp.asarray(points[rows]),
            jnp.asarray(weights),
            horizon=self.horizon,
            ends=self.ends,
            length=self.length,
        )


def _integrate(
    choice: Choice,
    found: Found,
    batch: Batch,
    basis: Basis,
    rules: list[tuple[np.ndarray, np.ndarray]],
) -> VanTrees:
    typical = found.weights @ found.shares
    for _ in range(MOST_SHRINKS):
        judged = [_values(choice, typical, batch, basis, *rule) for rule in rules]
        if all(np.all(values > FAILED) for values, _ in judged):
            return _result(choice, judged, found)
        choice = choice.scale(SHRINK)
    nothing = choice.scale(0.0)
    return VanTrees(
        0.0, 0.0, 1.0, _describe(choice), ("no place was left where the field has a bound",), nothing
    )


def _values(
    choice: Choice, typical: Array, batch: Batch, basis: Basis, points: np.ndarray, weights: np.ndarray
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
    """Val and prior weights (not normalised) at points: lambda is found at each by the same algorithm."""
    starts = jnp.stack([typical, 1 - jnp.minimum(2.5 * (1 - typical), 0.9)])
    starts = jnp.broadcast_to(starts[:, None], (2, batch.size, len(typical)))
    values, mass = [], []
    for first in range(0, len(points), batch.size):
        nodes = batch.nodes(points[first : first + batch.size], weights[first : first + batch.size])
        found = find_shares(choice, nodes, basis, starts)
        found = find_shares(choice, nodes, basis, jnp.broadcast_to(found.shares, starts.shape))
        density = np.exp(np.asarray(jax.vmap(choice.prior.log_density)(nodes.z)))
        values.append(np.asarray(found.values))
        mass.append(np.asarray(nodes.weight) * density)
    count = len(points)
    return np.concatenate(values)[:count], np.concatenate(mass)[:count]


def _result(choice: Choice, judged: list[tuple[np.ndarray, np.ndarray]], found: Found) -> VanTrees:
    means = [float(mass @ values / np.sum(mass)) for values, mass in judged]
    reasons = _reasons(choice, found)
    if len(judged) == 2:
        spread = abs(means[0] - means[1])
        return VanTrees(max(min(means) - spread, 0.0), spread, 1.0, _describe(choice), reasons, choice)
    values, mass = judged[0]
    ratio = mass / np.mean(mass)  # mass is known up to a constant: a ratio estimate, by its linear part
    residual = ratio * (values - means[0])
    error = float(np.std(residual, ddof=2) / math.sqrt(len(values)))
    limit = means[0] - float(scipy.stats.t.ppf(CONFIDENCE, len(values) - 1)) * error
    return VanTrees(max(limit, 0.0), error, CONFIDENCE, _describe(choice), reasons, choice)


def _describe(choice: Choice) -> str:
    tilt, bend = (
        ", ".join(f"{x:.2f}" for x in np.asarray(each)) for each in (choice.prior.tilt, choice.prior.bend)
    )
    return f"density exp(tilt.z + bend.z^2) on the ranges scaled to [-1, 1], tilt ({tilt}), bend ({bend})"


def _reasons(choice: Choice, found: Found) -> tuple[str, ...]:
    """What keeps the bound from being larger, in words."""
    reasons = []
    price = float(np.mean(1 - np.asarray(found.weights @ found.shares)))
    if price > 0.3:
        reasons.append(f"probing could pay: {price:.0%} of the cost is held back to price deviations")
    if len(found.shares[0]) < 20:
        reasons.append("few steps: there is little to learn from, and little to lose")
    steep = np.abs(np.asarray(choice.prior.tilt)) + np.abs(np.asarray(choice.prior.bend))
    if np.any(steep > 3):
        reasons.append("the prior leans on an edge of the ranges")
    return tuple(reasons)
