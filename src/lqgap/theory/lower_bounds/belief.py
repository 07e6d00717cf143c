"""The best policy against a prior, by dynamic programming over beliefs: exact where few steps decide.

If the true member is revealed after T steps, a policy only gets better. So for every prior mu on a class,

    minimax gap >= B(mu) = min_pi sum_i mu_i E_i sum_{h<T} ||u_h + K^i_h xhat^i_{h|h}||^2_{M^i_h} ,

with equality at the worst prior if T is at least the horizon H (the input of step H has no effect). What a
policy needs to know is the belief: the members' posterior weights and filters. At the last of the T steps the
best input is a weighted mean of what the members want; before, it also decides how much the next observation
tells, and is searched for around that mean, within the distance beyond which it costs more than can be
gained. Expectations over an observation are Gauss-Hermite sums under each member, with more nodes the more
the members' innovations differ in size. Search and sums choose the prior only: the bound is the B of this
prior from below, by `relaxation`, which neither a missed minimum nor an inexact sum can make too large.

B is concave, and the gaps of its minimiser are a supergradient: the largest B is found by cutting planes,

    maximise min_k sum_i mu_i Gap_i(pi_k) over priors mu ,

a linear program whose dual is the best mixture of the policies pi_k found so far: its value is the minimax
over T steps from above, as exactly as the sums are, and the two ends meet.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float

from lqgap.batches import take
from lqgap.evaluation.reference import Reference
from lqgap.linalg.psd import solve_unrolled
from lqgap.systems.innovation import correct_by_gain
from lqgap.theory.lower_bounds.bound import AbstractLowerBound, Found, Members, spread_prior
from lqgap.theory.lower_bounds.relaxation import one_step_bound, two_step_bound

MIN_NODES = {1: 40, 2: 32}  # by the number of outputs: Gauss-Hermite nodes along each
MAX_NODES = {(1, 1): 160, (1, 2): 80, (2, 1): 96}  # by the numbers of outputs and of steps
FEW_NODES = 20  # to choose pairs by
NUM_SEARCHED = 3  # pairs for which dynamic programming looks two steps ahead
NUM_CANDIDATES = {1: 25, 2: 9}  # by the number of inputs: along each
NUM_ZOOMS = {1: 5, 2: 9}
MAX_CUTS = 100
TOLERANCE = 1e-6  # relative, between the two ends of the search over priors


class Bayes(AbstractLowerBound):
    """The best policy against a prior on all members over one step, or on a pair over two steps."""

    kind: ClassVar[str] = "bayes"

    def applies(self, members: Members) -> bool:
        """Whether the sums have few enough terms."""
        return is_small(members.references, num_steps=1) or len(_small_pairs(members)) > 0

    def bound(self, members: Members) -> Found:
        """The larger of the bound over one step and those over two steps of the most promising pairs."""
        found = []
        if is_small(members.references, num_steps=1):
            bound = belief_bound(members.references, num_steps=1)
            found.append(Found(bound.value, bound.prior, 1))
        for pair in _most_promising(members.references, _small_pairs(members)):
            bound = belief_bound(take(members.references, pair), num_steps=2)
            found.append(Found(bound.value, spread_prior(bound.prior, pair, len(members)), 2))
        return max(found, key=lambda bound: bound.value)


class BeliefBound(eqx.Module):
    """The minimax gap over the first steps of a class: no less than `value`, by this prior."""

    value: float  # proved, up to rounding
    upper: float  # no less than it, as exactly as the sums
    prior: Float[np.ndarray, " member"]
    num_steps: int


class Quadrature(eqx.Module):
    """Gauss-Hermite sums of a standard normal vector, with this many nodes along each of its entries."""

    grid: Float[Array, "node output"]
    mass: Float[Array, " node"]

    def __init__(self, nodes: int, outputs: int):
        points, weights = np.polynomial.hermite_e.hermegauss(nodes)
        grid = np.stack(np.meshgrid(*[points] * outputs, indexing="ij"), axis=-1).reshape(-1, outputs)
        mass = np.prod(np.stack(np.meshgrid(*[weights] * outputs, indexing="ij"), axis=-1), axis=-1).ravel()
        self.grid, self.mass = jnp.asarray(grid), jnp.asarray(mass / mass.sum())


def belief_bound(references: Reference, *, num_steps: int, tolerance: float = TOLERANCE) -> BeliefBound:
    """The largest B over priors on all members, for one or two steps, if it `is_small`.

    Args:
        tolerance: relative, of the search over priors; `value` is a bound whatever it is.
    """
    models, count = first_steps(references, num_steps), len(references.A)
    sums = Quadrature(num_nodes(references, num_steps=num_steps), models.C.shape[1])
    prior = best_prior = np.full(count, 1 / count)
    best, upper = 0.0, np.inf
    cuts: list[np.ndarray] = []
    while len(cuts) < MAX_CUTS and best < (1 - tolerance) * upper:
        cuts.append(np.asarray(bayes_gaps(models, jnp.asarray(prior), sums)))
        if prior @ cuts[-1] > best:
            best, best_prior = float(prior @ cuts[-1]), prior
        prior, upper = _worst_prior(np.asarray(cuts))
    from_below = one_step_bound if num_steps == 1 else two_step_bound
    return BeliefBound(from_below(models, best_prior), upper, best_prior, num_steps)


def is_small(references: Reference, *, num_steps: int) -> bool:
    """Whether the sums of `belief_bound` have few enough terms."""
    inputs, outputs = references.B.shape[-1], references.C.shape[-2]
    if (outputs, num_steps) not in MAX_NODES:
        return False
    if num_steps > 1 and (inputs not in NUM_CANDIDATES or len(references.A) > 2):
        return False
    return num_nodes(references, num_steps=num_steps) <= MAX_NODES[outputs, num_steps]


def num_nodes(references: Reference, *, num_steps: int) -> int:
    """Nodes along each output: in proportion to the largest ratio of two members' innovations."""
    roots = np.asarray(references.S_root[:, :num_steps])
    ratios = np.linalg.norm(np.linalg.solve(roots[:, None], roots[None, :]), ord=2, axis=(-2, -1))
    return MIN_NODES[roots.shape[-1]] * int(np.ceil(np.max(ratios) - 0.25))


def first_steps(references: Reference, num_steps: int) -> Reference:
    """What the references say of the first steps alone."""
    names = ("K", "M", "L", "S_root")
    parts = [jnp.asarray(np.asarray(getattr(references, name))[:, :num_steps]) for name in names]
    return eqx.tree_at(lambda r: [getattr(r, name) for name in names], references, parts)


@eqx.filter_jit
def bayes_gaps(
    models: Reference, prior: Float[Array, " member"], sums: Quadrature
) -> Float[Array, " member"]:
    """The gap of every member over the steps of these references, under the best policy against the prior."""
    return _gaps_from(0, sums, models, jnp.log(prior), jnp.zeros_like(models.A[:, 0]))


def _small_pairs(members: Members) -> list[np.ndarray]:
    """Pairs whose sums over two steps have few enough terms."""
    if members.references.K.shape[1] < 2:
        return []
    return [pair for pair in members.pairs if is_small(take(members.references, pair), num_steps=2)]


def _most_promising(references: Reference, pairs: list[np.ndarray]) -> list[np.ndarray]:
    """A few pairs, those whose bounds over one step are the largest."""
    even, sums = jnp.full(2, 0.5), Quadrature(FEW_NODES, references.C.shape[1])
    promise = [float(np.mean(bayes_gaps(first_steps(take(references, p), 1), even, sums))) for p in pairs]
    return [pairs[index] for index in np.argsort(promise)[::-1][:NUM_SEARCHED]]


def _gaps_from(step: int, sums: Quadrature, models: Reference, log_weights: Array, predicted: Array) -> Array:
    """The gap of every member from a belief on."""

    def at(truth: Array, normal: Array) -> Array:
        y = models.C[truth] @ predicted[truth] + models.S_root[truth, step] @ normal
        S = jax.vmap(lambda root: root @ root.T)(models.S_root[:, step])
        filtered = jax.vmap(correct_by_gain, in_axes=(0, 0, 0, 0, None))(
            models.C, models.L[:, step], S, predicted, y
        )
        log_posterior = jax.nn.log_softmax(log_weights + filtered.log_density)
        return _act(step, sums, models, log_posterior, filtered.xhat)[truth]

    def of(truth: Array) -> Array:
        return sums.mass @ jax.vmap(at, in_axes=(None, 0))(truth, sums.grid)

    return jax.vmap(of)(jnp.arange(len(models.A)))


def _act(step: int, sums: Quadrature, models: Reference, log_weights: Array, xhat: Array) -> Array:
    """What this step and all after it cost under every member, with the best input."""
    weights = jnp.exp(log_weights)
    M = models.M[:, step]
    wanted = -jnp.einsum("kij,kj->ki", models.K[:, step], xhat)
    total = jnp.einsum("k,kij->ij", weights, M)
    mean, _ = solve_unrolled(total, jnp.einsum("k,kij,kj->i", weights, M, wanted))

    def now(u: Array) -> Array:
        off = u[None, :] - wanted
        return jnp.einsum("ki,kij,kj->k", off, M, off)

    if step == models.K.shape[1] - 1:
        return now(mean)

    def cost(u: Array) -> Array:
        predicted = jnp.einsum("kij,kj->ki", models.A, xhat) + jnp.einsum("kij,j->ki", models.B, u)
        return now(u) + _gaps_from(step + 1, sums, models, log_weights, predicted)

    # Further away the input costs more at once than all later steps cost after the mean.
    later = weights @ (cost(mean) - now(mean))
    reach = jnp.sqrt(later / _smallest_eigenvalue(total))
    return _search(cost, weights, mean, reach)


def _search(cost: Any, weights: Array, centre: Array, reach: Array) -> Array:
    """The costs at the best input of ever finer grids."""
    inputs = len(centre)
    ticks = np.linspace(-1, 1, NUM_CANDIDATES[inputs])
    grid = jnp.asarray(np.stack(np.meshgrid(*[ticks] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs))

    def zoom(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        centre, reach = carry[:2]
        candidates = centre[None, :] + reach * grid
        costs = jax.vmap(cost)(candidates)
        best = jnp.argmin(costs @ weights)
        return (candidates[best], reach * (ticks[1] - ticks[0]), costs[best]), None

    start = (centre, reach, jnp.zeros_like(weights))
    (_, _, costs), _ = jax.lax.scan(zoom, start, length=NUM_ZOOMS[inputs])
    return costs


def _smallest_eigenvalue(X: Array) -> Array:
    if len(X) == 1:
        return X[0, 0]
    middle = 0.5 * (X[0, 0] + X[1, 1])
    return middle - jnp.sqrt(0.25 * (X[0, 0] - X[1, 1]) ** 2 + X[0, 1] ** 2)


def _worst_prior(cuts: Float[np.ndarray, "cut member"]) -> tuple[np.ndarray, float]:
    """The prior with the largest lower envelope of the cuts, and its value."""
    count = cuts.shape[1]
    scale = np.max(np.abs(cuts)) or 1.0  # of equal members, nothing is lost
    found = scipy.optimize.linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=np.column_stack([-cuts / scale, np.ones(len(cuts))]),
        b_ub=np.zeros(len(cuts)),
        A_eq=np.append(np.ones(count), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, 1)] * count + [(None, None)],
    )
    prior = np.maximum(found.x[:count], 0)
    return prior / prior.sum(), float(-found.fun * scale)
