"""A lower bound of the gap over the ranges of a family, by van Trees' inequality (docs/lower_bound.md).

    sup over theta of Gap_theta >= E_mu Gap_theta >= E_mu Val(theta)        for every policy,

with a prior mu on the box of the parameters, a field that vanishes at its faces, and a linear-quadratic
problem at every theta. lambda(theta), the only part of Val that is not a formula, is what a fixed algorithm
finds at theta: two starts, then passes of `search.find_shares`. It is a function on the whole box.

    proved     the inequality, for every choice of what is free
    computed   the integral over theta, in double precision, by two Gauss-Legendre rules finer than the one on
               which the choice was made: the smaller value less their difference
    searched   the choice itself

Of more than two parameters, the two that promise most are free and the others held at the middle of their
ranges: a family contains its slices. Of plants with more than four states one parameter is free. It bounds
the ranges. A finite class inside of them inherits nothing: its members may be told apart at once.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, read_count
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.progress import held_file, is_cut, is_spent, release_memory, track
from lqgap.simulators.building import Branch
from lqgap.simulators.family import AbstractFamily
from lqgap.states import fingerprint, read_state, write_state
from lqgap.systems import LQG
from lqgap.theory.lower_bounds.van_trees.climbing import BY_THEN, climb
from lqgap.theory.lower_bounds.van_trees.fields import Basis, gauss_rule, make_basis
from lqgap.theory.lower_bounds.van_trees.nodes import Box, Nodes, box_of, make_nodes
from lqgap.theory.lower_bounds.van_trees.search import (
    FAILED,
    Choice,
    Found,
    find_shares,
    first_choice,
)

MAX_HORIZON = 1000
MOST_FREE = 2  # parameters; the cost grows with the power of their number
MOST_STATES = 4  # of plants for which two parameters are free
POINTS = {
    1: (16, 23, 29),
    2: (7, 9, 11),
}  # by free parameters: to choose on, and of the two rules, along each
MEMORY = {1: 8, 2: 6}  # instants of a window by free parameters, for one output; with several by outputs
LEVEL, YOUNG = 1.5, (0.5, 0.4, 0.2)  # to start from
ITERATIONS, FEWEST = 24, 12
LONG = 400  # steps: beyond so many the climb begins slowly, and has three times as many iterations
USUAL_WORK, MOST_WORK = (
    3e5,
    1e9,
)  # of a step, and of all: nodes times outputs times the cube of the joint state
HELD = "search of a bound"  # kind of the file of one that was cut
SHRINK, MOST_SHRINKS = 0.95, 12  # of the field, where a finer rule finds a place without a bound


class VanTrees(eqx.Module):
    """No policy whatever has a smaller worst gap over the ranges than `value`.

    `spread` is the difference of two rules for the integral over the parameters, already taken off: computed,
    and seen to converge, not enclosed.
    """

    value: float
    spread: float
    confidence: float
    prior: str = eqx.field(static=True)
    reasons: tuple[str, ...] = eqx.field(static=True)
    choice: Choice
    box: Box
    kind: str = eqx.field(static=True, default="van-trees")


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


def van_trees_bound(
    family: AbstractFamily,
    *,
    horizon: IntLike,
    ends: bool = True,
    iterations: IntLike | None = None,
) -> VanTrees:
    """The bound of a family whose parameters are intervals that fill a box, over steps 0..horizon.

    Args:
        ends: whether the task ends at the horizon; if not, the state left then counts.
        iterations: most steps of the search; any number gives a bound. If left out, 24, fewer for larger
            plants (of more than four states with one free parameter in place of two), three times as many
            beyond 400 steps, and an error for what would take many minutes.
    """
    horizon = read_count("horizon", horizon, least=1, most=MAX_HORIZON)
    if iterations is not None:
        iterations = read_count("iterations", iterations, least=0, most=100_000)
    box = box_of(_only_branch(family))
    is_small = iterations is not None or _middle(box).num_states <= MOST_STATES
    most = MOST_FREE if is_small else 1
    with track("over the ranges"):
        if len(box.low) > most:
            box = _slice(box, most, horizon, ends)
        return _bound_of(box, horizon, ends, iterations)


def _only_branch(family: AbstractFamily) -> Branch:
    low, high = family.branches[0].ends
    count = int(np.sum(high > low))
    if len(family.branches) > 1 or count == 0:
        raise InvalidArgumentError("family has parameters that are no intervals (see `ranges.boxes_of`)")
    if not family.is_traceable:
        raise InvalidArgumentError("family has a `build` that JAX cannot differentiate")
    return family.branches[0]


def _slice(box: Box, most: int, horizon: int, ends: bool) -> Box:
    """The box with only those parameters free whose own slices promise most, before any search."""
    promise = np.full(len(box.low), -np.inf)
    for parameter in range(len(box.low)):
        if parameter >= most and is_spent(BY_THEN / 2):
            break
        _, basis, nodes = _prepare(box.slice([parameter]), horizon, ends)
        promise[parameter] = first_choice(nodes, basis, level=LEVEL, young=YOUNG)[1].mean
    return box.slice(sorted(np.argsort(promise)[-most:].tolist()))


def _prepare(box: Box, horizon: int, ends: bool) -> tuple[Batch, Basis, Nodes]:
    q = len(box.low)
    batch = _batch(box, horizon, ends)
    nodes = batch.nodes(*gauss_rule(q, POINTS[q][0]))
    release_memory()
    return batch, make_basis(q), nodes


def _batch(box: Box, horizon: int, ends: bool) -> Batch:
    q, p = len(box.low), len(_middle(box).C)
    return Batch(box, POINTS[q][0] ** q, horizon, ends, MEMORY[q] if p == 1 else min(2 * p + 4, 12))


def _middle(box: Box) -> LQG:
    return box.plant(jnp.zeros(len(box.low)))


def _plan(batch: Batch) -> int:
    """How many steps of the search a plant of this size can have."""
    p, n = _middle(batch.box).C.shape
    joint = 2 * ((len(batch.box.low) + 1) * n + p - 1) + batch.length
    work = batch.size * p * joint**3
    if work * (batch.horizon + 1) > MOST_WORK:
        raise InvalidArgumentError(
            f"family has plants with {n} states and {p} outputs, too large for {batch.horizon + 1} steps; "
            f"van_trees_bound(..., iterations=4) tries, and takes long"
        )
    most = _most_iterations(batch.horizon)
    return int(np.clip(most * USUAL_WORK / work, FEWEST, most))


def _most_iterations(horizon: int) -> int:
    return 3 * ITERATIONS if horizon > LONG else ITERATIONS


def _bound_of(box: Box, horizon: int, ends: bool, iterations: int | None) -> VanTrees:
    short = ()
    if iterations is None:
        iterations = _plan(_batch(box, horizon, ends))
        short = (f"a short search, of {iterations} steps: plants of this size take long",)
    batch, basis, nodes = _prepare(box, horizon, ends)
    choice, found, factors = first_choice(nodes, basis, level=LEVEL, young=YOUNG)
    if not found.is_finite:
        raise NotConvergedError("the linear-quadratic problem has no solution even without a field")
    release_memory()
    owner = fingerprint(box.low, box.high, box.held, horizon, ends)
    held = held_file(f"van-trees-{owner[:8]}")
    if held is not None and held.exists():
        choice, _ = read_state(held, choice, kind=HELD, owner=owner, refusal="of another bound")
        found = find_shares(choice, nodes, basis, found.shares[None])
    if iterations and not is_spent(BY_THEN):
        with track("climb", total=iterations) as advance:
            choice, found = climb(
                choice, found, factors, nodes, basis, iterations=iterations, advance=advance
            )
    if held is not None and is_cut():
        write_state(held, choice, kind=HELD, owner=owner)
    is_short = iterations < _most_iterations(horizon)
    rules = [gauss_rule(len(box.low), count) for count in POINTS[len(box.low)][1:]]
    result = _integrate(choice, found, batch, basis, rules)
    return replace(result, reasons=(*result.reasons, *short)) if is_short else result


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
            return _result(choice, judged, found, batch.box)
        choice = choice.scale(SHRINK)
    reasons = ("no field was found that has a bound everywhere",)
    return VanTrees(0.0, 0.0, 1.0, _describe(choice, batch.box), reasons, choice.scale(0.0), batch.box)


def _values(
    choice: Choice, typical: Array, batch: Batch, basis: Basis, points: np.ndarray, weights: np.ndarray
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
    """Val and prior weights (not normalised) at points: lambda is found at each by the same algorithm."""
    starts = jnp.stack([typical, 1 - jnp.minimum(2.5 * (1 - typical), 0.9)])
    starts = jnp.broadcast_to(starts[:, None], (2, batch.size, len(typical)))
    values, mass = [], []
    for first in range(0, len(points), batch.size):
        nodes = batch.nodes(points[first : first + batch.size], weights[first : first + batch.size])
        found = find_shares(choice, nodes, basis, starts, rounds=2)
        density = np.exp(np.asarray(jax.vmap(choice.prior.log_density)(nodes.z)))
        values.append(np.asarray(found.values))
        mass.append(np.asarray(nodes.weight) * density)
    count = len(points)
    return np.concatenate(values)[:count], np.concatenate(mass)[:count]


def _result(choice: Choice, judged: list[tuple[np.ndarray, np.ndarray]], found: Found, box: Box) -> VanTrees:
    means = [float(mass @ values / np.sum(mass)) for values, mass in judged]
    spread = abs(means[0] - means[1])
    value = max(min(means) - spread, 0.0)
    return VanTrees(value, spread, 1.0, _describe(choice, box), _reasons(choice, found, box), choice, box)


def _describe(choice: Choice, box: Box) -> str:
    tilt, bend = (
        ", ".join(f"{x:.2f}" for x in np.asarray(each)) for each in (choice.prior.tilt, choice.prior.bend)
    )
    names = ", ".join(box.names)
    return f"exp(tilt.z + bend.z^2), z of {names} from -1 to 1 over the ranges, tilt ({tilt}), bend ({bend})"


def _reasons(choice: Choice, found: Found, box: Box) -> tuple[str, ...]:
    """What keeps the bound from being larger, in words."""
    reasons = []
    price = float(np.mean(1 - np.asarray(found.weights @ found.shares)))
    if price > 0.3:
        reasons.append(f"probing could pay: {price:.0%} of the cost is held back to price deviations")
    if len(found.shares[0]) < 20:
        reasons.append("few steps: there is little to learn from, and little to lose")
    if len(box.held) > len(box.low):
        reasons.append(f"only {' and '.join(box.names)} are unknown in it, others are held at their middles")
    steep = np.abs(np.asarray(choice.prior.tilt)) + np.abs(np.asarray(choice.prior.bend))
    if np.any(steep > 3):
        reasons.append("the prior leans on an edge of the ranges")
    return tuple(reasons)
