import numpy as np
import pytest

from lqgap.evaluation.estimate import have_light_tails
from lqgap.evaluation.gap import GapEstimate
from lqgap.experiments import estimates


def found(*, heavy: bool) -> GapEstimate:
    """Three plants on common noise; on the second, one run in a hundred may diverge."""
    noise = np.random.default_rng(0).exponential(size=400)
    totals = np.stack([noise, 2 * noise, 5 - noise / 4])
    if heavy:
        totals[1, ::100] *= 1e6
    return GapEstimate(
        mean=totals.mean(axis=1),
        stderr=totals.std(axis=1, ddof=1) / 20,
        totals=totals,
        per_step=totals[:, :1],
        value=np.full(3, 10.0),
        num_rollouts=400,
        has_light_tail=have_light_tails(totals),
    )


def test_light_tails_have_intervals_and_heavy_ones_quantiles_and_shares():
    light, heavy = (estimates.of_each(found(heavy=heavy)) for heavy in (False, True))
    assert all(each.low < each.mean < each.high for each in light)
    assert not any(each.has_interval for each in heavy)
    assert [each.diverged for each in heavy] == [0, 0.01, 0]
    assert all(0 < each.median < each.most < 10 for each in heavy)


def test_the_worst_is_the_largest_mean_with_an_interval_for_any_member():
    worst = estimates.of_worst(found(heavy=False))
    assert worst.mean == found(heavy=False).worst
    assert (worst.low, worst.high) == found(heavy=False).worst_interval


def test_the_worst_of_heavy_tails_is_as_bad_as_any_plant_in_each_respect():
    worst = estimates.of_worst(found(heavy=True))
    each = estimates.of_each(found(heavy=True))
    assert (worst.median, worst.most) == (max(e.median for e in each), max(e.most for e in each))
    assert worst.diverged == 0.01
    assert estimates.argworst(found(heavy=True)) == int(np.argmax([e.most for e in each]))


def test_the_mean_of_plants_knows_that_they_share_noise():
    mean = estimates.of_mean(found(heavy=False))
    totals = found(heavy=False).totals
    assert mean.mean == pytest.approx(totals.mean())
    assert mean.stderr == pytest.approx(totals.mean(axis=0).std(ddof=1) / 20)
    assert mean.median == np.quantile(totals, 0.5, method="inverted_cdf")


def test_what_was_computed_has_an_interval_of_no_width():
    assert estimates.exact(2.0).low == estimates.exact(2.0).high == 2.0
    assert estimates.exact(2.0).stderr == 0
