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

from dataclasses import replace

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

    @staticmethod
    def empty(num_members: int, *, buffer_size: int) -> "Statistics":
        """Before the first sample; a buffer of size 0 takes the score at every step."""
        sums = Sums(jnp.zeros((num_members, num_members)), jnp.zeros(num_members), jnp.asarray(0.0))
        size, num_directions = max(buffer_size, 1), min(NUM_DIRECTIONS, num_members)
        return Statistics(
            kept=sums,
            new=sums,
            buffered=jnp.zeros((size, num_members)),
            targets=jnp.zeros(size),
            weights=jnp.zeros(size),
            buffer_size=jnp.asarray(0),
            budget=jnp.asarray(1.0),
            nearest=jnp.asarray(0.0),
            directions=jnp.zeros((num_directions, num_members)),
            strengths=jnp.zeros(num_directions),
        )

    @property
    def is_lazy(self) -> bool:
        """Whether there is a buffer; without one, nothing bounds the score, as nothing needs to."""
        return len(self.buffered) > 1

    def score_increment(
        self, f: Float[Array, " member"], *, psi: Float[Array, ""], weight: Float[Array, ""]
    ) -> Float[Array, ""]:
        """By how much a sample may raise the score at most; zero without a buffer, where it is not used."""
        if not self.is_lazy:
            return jnp.zeros_like(weight)
        by_range = (jnp.max(f) - jnp.min(f)) ** 2 / (psi + self.nearest)
        centred = f - jnp.mean(f)
        along = self.directions @ centred
        rest = jnp.maximum(centred @ centred - along @ along, 0.0)
        by_direction = jnp.sum(along**2 / (self.strengths + 0.5 * psi)) + rest / (0.5 * psi)
        return weight * jnp.minimum(by_range, (1 + ROUNDING) * by_direction)

    def must_flush(self, increment: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether the exact score must be taken with a sample that may raise it by this much."""
        return (self.buffer_size + 1 == len(self.buffered)) | (self.budget - increment <= 0)

    def buffer(
        self,
        f: Float[Array, " member"],
        target: Float[Array, ""],
        *,
        increment: Float[Array, ""],
        weight: Float[Array, ""],
        is_there: Bool[Array, ""],
    ) -> "Statistics":
        """With another sample in the buffer, if it is there."""
        root = jnp.sqrt(weight)
        now = jnp.where(is_there, self.buffer_size, len(self.buffered))  # beyond the end: dropped
        return replace(
            self,
            buffered=self.buffered.at[now].set(root * f, mode="drop"),
            targets=self.targets.at[now].set(root * target, mode="drop"),
            weights=self.weights.at[now].set(weight, mode="drop"),
            buffer_size=self.buffer_size + is_there,
            budget=self.budget - jnp.where(is_there, increment, 0.0),
        )

    def flush(self, *, psi: Float[Array, ""]) -> tuple["Statistics", Bool[Array, ""]]:
        """Add up the buffered samples and take the exact score; and whether it has reached one."""
        is_there = jnp.arange(len(self.buffered)) < self.buffer_size
        f = jnp.where(is_there[:, None], self.buffered, 0.0)
        # Relative to one member: differences are what counts, and large common parts would cost their digits.
        relative = f - f[:, :1]
        gram = relative.T @ relative
        squares = jnp.diagonal(gram)
        dist = jnp.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0)
        loss = jnp.sum(jnp.where(is_there[:, None], (f - self.targets[:, None]) ** 2, 0.0), axis=0)
        added = Sums(dist, loss, jnp.sum(jnp.where(is_there, self.weights, 0.0)))
        flushed = replace(self, new=self.new + added, buffer_size=jnp.asarray(0))
        now = flushed.score(psi=psi)
        return replace(flushed, budget=1 - now), now >= 1

    def merge(self) -> "Statistics":
        """After a switch: the new samples join Z. The buffer must be empty."""
        kept = self.kept + self.new
        merged = replace(self, kept=kept, new=jax.tree.map(jnp.zeros_like, self.new))
        if not self.is_lazy:
            return merged
        nearest = jnp.min(jnp.where(jnp.eye(len(kept.loss), dtype=bool), jnp.inf, kept.dist))
        directions, strengths = _main_directions(kept.dist, len(self.directions))
        return replace(
            merged, budget=jnp.asarray(1.0), nearest=nearest, directions=directions, strengths=strengths
        )

    def score(self, *, psi: Float[Array, ""]) -> Float[Array, ""]:
        """The importance score of the new samples, without the buffered ones."""
        return jnp.max(self.new.dist / (self.kept.dist + psi))

    def estimate(self, among: Bool[Array, " member"]) -> Int[Array, ""]:
        """The member among the given ones with the smallest loss over Z."""
        return jnp.argmin(jnp.where(among, self.kept.loss, jnp.inf))

    def confidence_set(
        self,
        among: Bool[Array, " member"],
        *,
        beta: Float[Array, ""],
        resolution: Float[Array, ""] | float = 0.0,
    ) -> Bool[Array, " member"]:
        """The given members that predict about what the estimate predicts on Z; the estimate always does."""
        beta = (jnp.sqrt(beta) + resolution * jnp.sqrt(self.kept.weight)) ** 2
        return among & (self.kept.dist[self.estimate(among)] <= beta)


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
