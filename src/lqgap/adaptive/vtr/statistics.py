"""What value-target regression remembers of its samples, at a cost that does not grow with their number.

A sample is the vector f of all members' predictions and the target Y that came true. Two groups are kept:
Z, on which the present set rests, and the new ones since the last switch:

    dist[i, j] = sum (f_i - f_j)^2 ,     loss[i] = sum (f_i - Y)^2        over each group
    score = max_{i, j} dist_new[i, j] / (dist_Z[i, j] + psi)              switch when it reaches one
    estimate = argmin loss_Z ,   set = { i : dist_Z[i, estimate] <= beta }

The score grows by at most min(r^2 / (psi + min dist_Z), f'V^-1 f) a step, with r = max f - min f, f less
its mean and V = G + psi/2 I for any G below the centred Gram matrix of Z: by Cauchy and Schwarz

    (f_i - f_j)^2 <= f'V^-1 f (e_i - e_j)'V (e_i - e_j) <= f'V^-1 f (dist_Z[i, j] + psi) .

G is a Nystroem approximation, of few directions, so that this costs O(N). `budget` is what is left of one
after subtracting these increments; until it is used up the score is below one, and samples stay in a buffer
instead of being added to N^2 sums: the trigger fires at exactly the same steps.

A weighted sample is one whose f and Y are multiplied by the root of its weight. Where the truth lies between
the members, and the nearest one predicts up to `resolution` differently in the root mean square, the radius
grows with the samples: beta becomes (beta^1/2 + resolution (sum of weights)^1/2)^2.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

NUM_DIRECTIONS = 16
ROUNDING = 1e-9


class Sums(eqx.Module):
    """Distances between members and losses over one group of samples."""

    dist: Float[Array, "member member"]
    loss: Float[Array, " member"]
    weight: Float[Array, ""]  # of all samples together: their number, if all weigh one

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.dist + other.dist, self.loss + other.loss, self.weight + other.weight)


class Statistics(eqx.Module):
    """The sums of both groups, the buffered samples, and how far the score certainly is from one."""

    kept: Sums  # over Z
    new: Sums  # without the buffered ones
    buffered: Float[Array, "sample member"]
    targets: Float[Array, " sample"]
    weights: Float[Array, " sample"]
    buffer_size: Int[Array, ""]
    budget: Float[Array, ""]
    nearest: Float[Array, ""]  # the smallest distance of two members on Z
    directions: Float[Array, "direction member"]  # orthonormal, in which predictions differed on Z
    strengths: Float[Array, " direction"]  # and by how much: G = directions' diag(strengths) directions


def no_samples(num_members: int, *, buffer_size: int) -> Statistics:
    """Before the first sample; a buffer of size 0 takes the score at every step."""
    sums = Sums(jnp.zeros((num_members, num_members)), jnp.zeros(num_members), jnp.asarray(0.0))
    return Statistics(
        kept=sums,
        new=sums,
        buffered=jnp.zeros((max(buffer_size, 1), num_members)),
        targets=jnp.zeros(max(buffer_size, 1)),
        weights=jnp.zeros(max(buffer_size, 1)),
        buffer_size=jnp.asarray(0),
        budget=jnp.asarray(1.0 if buffer_size else -jnp.inf),
        nearest=jnp.asarray(0.0),
        directions=jnp.zeros((min(NUM_DIRECTIONS, num_members), num_members)),
        strengths=jnp.zeros(min(NUM_DIRECTIONS, num_members)),
    )


def score_increment(
    statistics: Statistics, f: Float[Array, " member"], *, psi: Float[Array, ""], weight: Float[Array, ""]
) -> Float[Array, ""]:
    """By how much a sample may raise the score at most; zero without a buffer, where it is not used."""
    if len(statistics.buffered) == 1:
        return jnp.zeros_like(weight)
    by_range = (jnp.max(f) - jnp.min(f)) ** 2 / (psi + statistics.nearest)
    centred = f - jnp.mean(f)
    along = statistics.directions @ centred
    rest = jnp.maximum(centred @ centred - along @ along, 0.0)
    by_direction = jnp.sum(along**2 / (statistics.strengths + 0.5 * psi)) + rest / (0.5 * psi)
    return weight * jnp.minimum(by_range, (1 + ROUNDING) * by_direction)


def must_flush(statistics: Statistics, increment: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether the exact score must be taken with a sample that may raise it by this much."""
    is_full = statistics.buffer_size + 1 == len(statistics.buffered)
    return is_full | (statistics.budget - increment <= 0)


def buffer(
    statistics: Statistics,
    f: Float[Array, " member"],
    target: Float[Array, ""],
    *,
    increment: Float[Array, ""],
    weight: Float[Array, ""],
    is_there: Bool[Array, ""],
) -> Statistics:
    """The statistics with another sample in the buffer, if it is there."""
    root = jnp.sqrt(weight)
    now = jnp.where(is_there, statistics.buffer_size, len(statistics.buffered))  # beyond the end: dropped
    return eqx.tree_at(
        lambda s: (s.buffered, s.targets, s.weights, s.buffer_size, s.budget),
        statistics,
        (
            statistics.buffered.at[now].set(root * f, mode="drop"),
            statistics.targets.at[now].set(root * target, mode="drop"),
            statistics.weights.at[now].set(weight, mode="drop"),
            statistics.buffer_size + is_there,
            statistics.budget - jnp.where(is_there, increment, 0.0),
        ),
    )


def flush_if(
    is_due: Bool[Array, ""], statistics: Statistics, *, psi: Float[Array, ""]
) -> tuple[Statistics, Bool[Array, ""]]:
    """Flush the buffer and take the exact score, if it is due; and whether it has reached one."""
    return jax.lax.cond(is_due, _flush, lambda s, _: (s, jnp.asarray(False)), statistics, psi)


def merge(statistics: Statistics) -> Statistics:
    """After a switch: the new samples join Z. The buffer must be empty."""
    none = jax.tree.map(jnp.zeros_like, statistics.new)
    is_lazy = jnp.isfinite(statistics.budget)
    kept = statistics.kept + statistics.new
    nearest = jnp.min(jnp.where(jnp.eye(len(kept.loss), dtype=bool), jnp.inf, kept.dist))
    directions, strengths = statistics.directions, statistics.strengths
    if len(statistics.buffered) > 1:  # without a buffer they are not needed
        directions, strengths = _main_directions(kept.dist, len(directions))
    return eqx.tree_at(
        lambda s: (s.kept, s.new, s.budget, s.nearest, s.directions, s.strengths),
        statistics,
        (kept, none, jnp.where(is_lazy, 1.0, statistics.budget), nearest, directions, strengths),
    )


def score(statistics: Statistics, *, psi: Float[Array, ""]) -> Float[Array, ""]:
    """The importance score of the new samples, without the buffered ones."""
    return jnp.max(statistics.new.dist / (statistics.kept.dist + psi))


def estimate(statistics: Statistics, among: Bool[Array, " member"]) -> Int[Array, ""]:
    """The member among the given ones with the smallest loss over Z."""
    return jnp.argmin(jnp.where(among, statistics.kept.loss, jnp.inf))


def confidence_set(
    statistics: Statistics,
    among: Bool[Array, " member"],
    *,
    beta: Float[Array, ""],
    resolution: Float[Array, ""] | None = None,
) -> Bool[Array, " member"]:
    """The given members that predict about what the estimate predicts on Z; the estimate always does."""
    if resolution is not None:
        beta = (jnp.sqrt(beta) + resolution * jnp.sqrt(statistics.kept.weight)) ** 2
    return among & (statistics.kept.dist[estimate(statistics, among)] <= beta)


def _flush(statistics: Statistics, psi: Float[Array, ""]) -> tuple[Statistics, Bool[Array, ""]]:
    """Add up the buffered samples, and take the exact score."""
    is_there = jnp.arange(len(statistics.buffered)) < statistics.buffer_size
    f = jnp.where(is_there[:, None], statistics.buffered, 0.0)
    # Relative to one member: differences are what counts, and large common parts would cost their digits.
    relative = f - f[:, :1]
    gram = relative.T @ relative
    squares = jnp.diagonal(gram)
    dist = jnp.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0)
    loss = jnp.sum(jnp.where(is_there[:, None], (f - statistics.targets[:, None]) ** 2, 0.0), axis=0)
    added = Sums(dist, loss, jnp.sum(jnp.where(is_there, statistics.weights, 0.0)))
    statistics = eqx.tree_at(
        lambda s: (s.new, s.buffer_size), statistics, (statistics.new + added, jnp.asarray(0))
    )
    now = score(statistics, psi=psi)
    budget = jnp.where(jnp.isfinite(statistics.budget), 1 - now, statistics.budget)
    return eqx.tree_at(lambda s: s.budget, statistics, budget), now >= 1


def _main_directions(dist: Array, count: int) -> tuple[Array, Array]:
    """Directions and strengths of a matrix below the centred Gram matrix G = -1/2 P dist P.

    With B = G Q for any Q, B (Q'B)^-1 B' is below G, and so it is with more added to Q'B.
    """
    rows = jnp.mean(dist, axis=0)
    G = -0.5 * (dist - rows[None, :] - rows[:, None] + jnp.mean(rows))
    Q = jax.random.normal(jax.random.key(0), (len(dist), count))
    for _ in range(2):
        Q, _ = jnp.linalg.qr(G @ Q)
    B = G @ Q
    core = 0.5 * (Q.T @ B + B.T @ Q)
    core = core + (ROUNDING * jnp.trace(G) + 1e-300) * jnp.eye(count)
    root = jnp.linalg.cholesky(core)
    factor = jax.scipy.linalg.solve_triangular(root, B.T, lower=True).T
    directions, sizes, _ = jnp.linalg.svd(factor, full_matrices=False)
    is_sound = jnp.all(jnp.isfinite(sizes))  # without directions the bound holds as well
    return jnp.where(is_sound, directions.T, 0.0), jnp.where(is_sound, sizes**2, 0.0)
