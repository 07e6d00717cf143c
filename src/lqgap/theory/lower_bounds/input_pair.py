"""Two members that differ in B alone, seen from between them: a sharp lower bound where they are close.

Both members share their filter's gains. With D = xhat^1 - xhat^0 before y, and P_c the law of the plant whose
B is the mean of theirs (see `filter_pair`, with share 1/2),

    dP_{1,0} = exp(+-l_h/2 - V_h/8) dP_c ,   V_h = sum_{s<=h} ||C D_s||^2_{1/S} ,   l_h = sum (C D_s)' e_s/S ,

l a martingale with variation V. With u = -(K^0 xhat^0 + K^1 xhat^1) / 2 + d and any metric M <= M^0, M^1 the
mean of the two gaps is at least E_c sum_h exp(-V_h/8 - |l_h|/2) (||d||^2_M + ||Delta||^2_M / 4). Stopped when
V > v or |l| > w (by step h with probability at most E V_h (1/v + 1/w^2): Markov and Doob), and bounded from
there on as in `two_point`, with g = E sum ||d||^2_M up to then,

    max(Gap_0, Gap_1) >= e^(-v/8 - w/2) inf_g { g + 1/4 [ (T^1/2 - c_1 g^1/2)_+^2 - sum_h B_h q_h(g) ]_+ } ,
    T = sum_h E min(om_h Z^2, B_h) ,   q_h = min(1, E V_h (1/v + 1/w^2)) ,
    E V_h <= ( (E_c V^0_h)^1/2 + c_2 g^1/2 )^2 ,

c_1 and c_2 the gains from d to Delta and C D. Every choice of v, w, B_h = b om_h, M and the number of steps
is valid, the best one found is taken. The bracket decreases in g: between two points of a grid the infimum is
at least the first point plus a quarter of the bracket at the second, so no grid is too coarse to be valid.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Bool, Float, Int

from lqgap.evaluation.reference import Reference
from lqgap.linalg import symmetrize
from lqgap.systems import LQG
from lqgap.theory.lower_bounds.bound import AbstractLowerBound, Found, Members, PairBound
from lqgap.theory.lower_bounds.filter_pair import gains_of_prefixes, join, spread
from lqgap.theory.lower_bounds.two_point import (
    largest_eigenvalue,
    precision_of,
    prefix_lengths,
    take_pairs,
    truncated_variance,
)

TILT = 0.4  # of the metric M: how little the directions count that are not wanted; any value is valid
STARTS = np.log([[w**2, w, b] for w in (0.1, 0.25, 0.5, 1, 1.5) for b in (2, 4)])  # v, w, b
NUM_ROUGH, NUM_POINTS, NUM_FINAL = 32, 128, 4096  # points of g, to choose candidates, to improve, at the end
NUM_POLISHED = 2  # candidates that are improved
MAX_EVALUATIONS = 200


class InputOnly(AbstractLowerBound):
    """Two members that differ in B alone, the best of all such pairs."""

    kind: ClassVar[str] = "input-only"

    def applies(self, members: Members) -> bool:
        """Whether there is such a pair."""
        return len(self._pairs(members)) > 0

    def bound(self, members: Members) -> Found:
        """The best of such pairs."""
        pairs = self._pairs(members)
        return input_pair_bound(members.references, pairs).best(pairs, num_members=len(members))

    def _pairs(self, members: Members) -> Int[np.ndarray, "pair two"]:
        return members.pairs[differ_in_input(members.systems, members.pairs)]


class Candidate(eqx.Module):
    """A pair, a metric and a number of steps: what a bound is made of."""

    wanted: Float[np.ndarray, " time"]  # om
    information: Float[np.ndarray, " time"]  # E V so far, without deviation
    gain_of_input: float  # c_1
    gain_of_output: float  # c_2


def input_pair_bound(references: Reference, pairs: Int[np.ndarray, "pair two"]) -> PairBound:
    """The bound of pairs of members that differ in B alone (and perhaps in their cost)."""
    lengths = prefix_lengths(references.K.shape[1])
    candidates: list[tuple[float, np.ndarray, int, Candidate]] = []
    for index, (first, second) in enumerate(take_pairs(references, pairs)):
        for row, of_pair in enumerate(_candidates(first, second, lengths)):
            number = index * len(first.A) + row
            candidates += [(*_rough(candidate), number, candidate) for candidate in of_pair]
    values, num_steps = np.zeros(len(pairs)), np.ones(len(pairs), dtype=int)
    candidates.sort(key=lambda entry: -entry[0])
    for rank, (rough, start, number, candidate) in enumerate(candidates):
        value = _polish(candidate, start) if rank < NUM_POLISHED else rough
        if number < len(pairs) and value > values[number]:
            values[number], num_steps[number] = value, len(candidate.wanted)
    return PairBound(values, num_steps)


def differ_in_input(systems: LQG, pairs: Int[np.ndarray, "pair two"]) -> Bool[np.ndarray, " pair"]:
    """Which pairs share all that their filters are made of."""
    first, second = pairs.T
    same = np.ones(len(pairs), dtype=bool)
    for name in ("A", "C", "W", "V", "S0"):
        matrices = np.asarray(getattr(systems, name))
        same &= np.all(matrices[first] == matrices[second], axis=(1, 2))
    return same


def common_metric(
    first: Float[Array, "n n"], second: Float[Array, "n n"], wanted: Float[Array, "n n"]
) -> Float[Array, "n n"]:
    """A matrix below both, X - (X - Y)_+ in coordinates stretched along what is wanted most."""
    root = jnp.linalg.cholesky(0.5 * (first + second))
    inverse = jnp.linalg.inv(root)
    top = jnp.linalg.eigh(root.T @ wanted @ root)[1][:, -1]
    along = jnp.outer(top, top)
    rest = jnp.eye(len(root)) - along
    shrink, stretch = along + TILT * rest, along + rest / TILT
    X, Y = (shrink @ inverse @ Z @ inverse.T @ shrink for Z in (first, second))
    values, vectors = jnp.linalg.eigh(symmetrize(X - Y))
    excess = (vectors * jnp.maximum(values, 0)[None, :]) @ vectors.T
    back = root @ stretch
    return symmetrize(back @ (X - excess) @ back.T)


def infimum(candidate: Candidate, choice: Float[np.ndarray, " three"], num_points: int) -> float:
    """The bound with v, w, b = exp(choice): a valid one whatever the number of points of g."""
    v, w, b = np.exp(choice)
    total = truncated_variance(b) * np.sum(candidate.wanted)
    if not (np.isfinite(total + candidate.gain_of_input + candidate.gain_of_output) and total > 0):
        return 0.0  # of plants that are alike, rounding makes it negative

    def bracket(g: np.ndarray) -> np.ndarray:
        moved = (np.sqrt(candidate.information) + candidate.gain_of_output * np.sqrt(g)[:, None]) ** 2
        stopped = np.minimum(1, moved * (1 / v + 1 / w**2))
        left = np.maximum(np.sqrt(total) - candidate.gain_of_input * np.sqrt(g), 0) ** 2
        return np.maximum(left - b * stopped @ candidate.wanted, 0)

    most = 0.25 * bracket(np.zeros(1))[0]
    g = most * np.linspace(0, 1, num_points) ** 2
    below = np.append(g[:-1] + 0.25 * bracket(g[1:]), most)
    return float(np.exp(-v / 8 - w / 2) * np.min(below))


def _rough(candidate: Candidate) -> tuple[float, np.ndarray]:
    """The best of a few choices."""
    values = [infimum(candidate, start, NUM_ROUGH) for start in STARTS]
    return max(values), STARTS[int(np.argmax(values))]


def _polish(candidate: Candidate, start: np.ndarray) -> float:
    """The bound at the best choice found."""
    found = scipy.optimize.minimize(
        lambda choice: -infimum(candidate, choice, NUM_POINTS),
        start,
        method="Nelder-Mead",
        options={"maxfev": MAX_EVALUATIONS, "xatol": 1e-3, "fatol": 1e-9},
    )
    return infimum(candidate, found.x, NUM_FINAL)


def _candidates(
    first: Reference, second: Reference, lengths: Int[np.ndarray, " prefix"]
) -> list[list[Candidate]]:
    """For every pair, one for each number of steps."""
    pair, precision = (first, second), precision_of(first)
    metric, wanted, information = _moments(first, second, precision)
    gains = [
        np.asarray(gains_of_prefixes(pair, metrics, lengths, of=of, share=0.5))
        for of, metrics in (
            ("input_difference", (metric, metric)),
            ("output_difference", (metric, precision)),
        )
    ]
    wanted, information = np.asarray(wanted), np.asarray(information)
    return [
        [
            Candidate(wanted[pair, :length], information[pair, :length], float(c1), float(c2))
            for length, c1, c2 in zip(lengths, gains[0][pair], gains[1][pair], strict=True)
        ]
        for pair in range(len(wanted))
    ]


@jax.jit
@jax.vmap
def _moments(first: Reference, second: Reference, precision: Array) -> tuple[Array, Array, Array]:
    """M, om and E V so far of every pair."""
    moments = spread(join(first, second, 0.5), precision)
    metric = jax.vmap(common_metric)(first.M, second.M, moments.input_difference)
    wanted = largest_eigenvalue(moments.input_difference, metric)
    return metric, wanted, jnp.cumsum(jnp.maximum(moments.output_difference, 0))
