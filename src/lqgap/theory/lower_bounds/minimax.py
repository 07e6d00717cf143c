"""What no policy can beat: a number below min over policies of max over members of the gap.

The largest of three bounds, each valid for every policy, adaptive, nonlinear or randomised:

    bayes       the best policy against a prior, if the member is revealed after a step or two  (`belief`)
    two-point   any two members that take time to be told apart                                (`two_point`)
    input-only  two members that differ in B alone                                             (`input_pair`)

A class contains its subsets, so the bound of a pair holds for all of it. The bound of members of a family
holds for the family.
"""

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from lqgap.arguments import IntLike, read_count
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import MAX_HORIZON
from lqgap.evaluation.gap import references_of
from lqgap.evaluation.reference import Reference
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG
from lqgap.theory.lower_bounds.belief import Quadrature, bayes_gaps, belief_bound, belief_models, is_small
from lqgap.theory.lower_bounds.input_pair import differ_in_input, input_pair_bound
from lqgap.theory.lower_bounds.two_point import PairBound, two_point_bound

KINDS = ("two-point", "input-only", "bayes")
MAX_MEMBERS = 32  # whose pairs are all looked at; of a larger class as many are taken, evenly
FEW_NODES = 20  # to choose pairs by
NUM_SEARCHED = 3  # pairs for which dynamic programming looks two steps ahead


class LowerBound(eqx.Module):
    """No policy whatever has a smaller worst gap than `value`.

    It rests on the first `num_steps` steps, and on a prior over the members, of which `pair` are the two
    heaviest. `by_kind` has the largest bound of every kind that was tried.
    """

    value: float
    kind: str = eqx.field(static=True)
    pair: tuple[int, int] = eqx.field(static=True)
    prior: Float[np.ndarray, " member"]
    num_steps: int = eqx.field(static=True)
    by_kind: dict[str, float]


def minimax_lower_bound(members: Members, *, horizon: IntLike, kinds: Sequence[str] = KINDS) -> LowerBound:
    """The largest lower bound found for a class over steps 0..horizon.

    Args:
        members: a finite class, or a batched LQG.
        kinds: the bounds to try; each holds by itself, and fewer are found faster.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidArgumentError(f"kinds has {kind!r}, expected some of {', '.join(KINDS)}")
    systems = Finite.of(members).systems
    horizon = read_count("horizon", horizon, least=0, most=MAX_HORIZON)
    count = len(systems.A)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_MEMBERS)).round().astype(int))
    systems = take(systems, chosen)
    found = _bounds(systems, references_of(systems, horizon=horizon), kinds)
    best = max(found, key=lambda bound: bound.value)
    prior = np.zeros(count)
    prior[chosen] = best.prior
    heaviest = np.sort(np.argsort(-prior, kind="stable")[:2])
    by_kind: dict[str, float] = {}
    for bound in found:
        by_kind[bound.kind] = max(bound.value, by_kind.get(bound.kind, 0.0))
    pair = (int(heaviest[0]), int(heaviest[-1]))
    return LowerBound(best.value, best.kind, pair, prior, best.num_steps, by_kind)


def _bounds(systems: LQG, references: Reference, kinds: Sequence[str]) -> list[LowerBound]:
    count = len(systems.A)
    found = [LowerBound(0.0, "trivial", (0, 0), np.full(count, 1 / count), 0, {})]
    if count == 1:
        return found
    pairs = np.asarray(list(itertools.combinations(range(count), 2)))
    if "two-point" in kinds:
        both = np.concatenate([pairs, pairs[:, ::-1]])
        found.append(_best_pair("two-point", two_point_bound(references, both), both, count))
    centred = pairs[differ_in_input(systems, pairs)]
    if "centre" in kinds and len(centred):
        found.append(_best_pair("input-only", input_pair_bound(references, centred), centred, count))
    if "bayes" not in kinds:
        return found
    if is_small(references, num_steps=1):
        bound = belief_bound(references, num_steps=1)
        found.append(LowerBound(bound.value, "bayes", (0, 0), bound.prior, 1, {}))
    return found + _two_steps_ahead(references, pairs)


def _best_pair(kind: str, bounds: PairBound, pairs: Int[np.ndarray, "pair two"], count: int) -> LowerBound:
    best = int(np.argmax(bounds.value))
    prior = np.zeros(count)
    prior[pairs[best]] = 0.5
    return LowerBound(float(bounds.value[best]), kind, (0, 0), prior, int(bounds.num_steps[best]), {})


def _two_steps_ahead(references: Reference, pairs: Int[np.ndarray, "pair two"]) -> list[LowerBound]:
    """Bayes bounds over two steps, of the pairs whose bounds over one step are the largest."""

    def of_pair(pair: Int[np.ndarray, " two"]) -> Reference:
        return take(references, pair)

    pairs = np.asarray([pair for pair in pairs if is_small(of_pair(pair), num_steps=2)]).reshape(-1, 2)
    if references.K.shape[1] < 2 or len(pairs) == 0:
        return []
    even, sums = jnp.full(2, 0.5), Quadrature(FEW_NODES, references.C.shape[1])
    promise = [float(np.mean(bayes_gaps(belief_models(of_pair(pair), 1), even, sums))) for pair in pairs]
    found = []
    for index in np.argsort(promise)[::-1][:NUM_SEARCHED]:
        bound = belief_bound(of_pair(pairs[index]), num_steps=2)
        prior = np.zeros(len(references.A))
        prior[pairs[index]] = bound.prior
        found.append(LowerBound(bound.value, "bayes", (0, 0), prior, 2, {}))
    return found
