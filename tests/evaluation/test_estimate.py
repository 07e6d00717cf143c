import math

import numpy as np
import pytest

from lqgap.evaluation.estimate import (
    DELTA,
    AbstractEstimate,
    confidence_limits,
    have_light_tails,
    skewness,
)
from lqgap.evaluation.gap import GapEstimate

LIGHT = {
    "normal": (lambda dice, size: dice.normal(10, 1, size), 10.0),
    "exponential": (lambda dice, size: dice.exponential(size=size), 1.0),
    "chi-square": (lambda dice, size: dice.chisquare(1, size), 1.0),
    "gamma": (lambda dice, size: dice.gamma(4, size=size), 4.0),
}
HEAVY = {
    "Pareto 1.1": (lambda dice, size: dice.pareto(1.1, size), 10.0),
    "Pareto 1.5": (lambda dice, size: dice.pareto(1.5, size), 2.0),
    "lognormal": (lambda dice, size: np.exp(2 * dice.normal(size=size)), math.exp(2)),
    "rare failures": (lambda dice, size: dice.exponential(size=size) * rare(dice, size), 0.97 + 3e4),
}
REPETITIONS = 1000


def rare(dice, size):
    """A factor of a million in three of a hundred runs."""
    return np.where(dice.uniform(size=size) < 0.03, 1e6, 1.0)


def estimate_of(totals, *, value=1.0) -> GapEstimate:
    """As `gap` makes it."""
    count = totals.shape[1]
    return GapEstimate(
        mean=totals.mean(axis=1),
        stderr=totals.std(axis=1, ddof=1) / math.sqrt(count),
        totals=totals,
        per_step=totals[:, :1],
        value=np.full(len(totals), value),
        num_rollouts=count,
        has_light_tail=have_light_tails(totals),
    )


def least_share(expected: float, count: int) -> float:
    """Four standard deviations of a binomial share below what is expected."""
    return expected - 4 * math.sqrt(expected * (1 - expected) / count)


@pytest.mark.parametrize("law", LIGHT)
@pytest.mark.parametrize("count", [8, 256])
def test_intervals_of_light_tails_hold_for_few_and_skewed_totals(law, count, seed):
    draw, true_mean = LIGHT[law]
    totals = draw(np.random.default_rng(seed), (REPETITIONS, count))
    parts = (totals.mean(axis=1), totals.std(axis=1, ddof=1) / math.sqrt(count), skewness(totals), count)
    low, high = (confidence_limits(*parts, delta=DELTA / 2, upper=upper) for upper in (False, True))
    # What is shown is symmetric, and as wide as the wider side; 93 % is what is promised.
    half = np.maximum(high - parts[0], parts[0] - low)
    assert np.mean(np.abs(parts[0] - true_mean) <= half) > least_share(0.93, REPETITIONS)


@pytest.mark.parametrize("law", HEAVY)
def test_heavy_tails_have_no_interval_or_a_true_one(law, seed):
    draw, true_mean = HEAVY[law]
    dice, wrong = np.random.default_rng(seed), 0
    for _ in range(200):
        low, high = estimate_of(draw(dice, (1, 256))).worst_interval
        wrong += not low <= true_mean <= high
    assert wrong / 200 < 1 - least_share(0.93, 200)


def test_totals_without_skewness_have_students_interval():
    mean, stderr = np.asarray([3.0]), np.asarray([0.5])
    high = confidence_limits(mean, stderr, np.zeros(1), 9, delta=0.025, upper=True)
    np.testing.assert_allclose(high, 3 + 0.5 * 2.306004, rtol=1e-6)  # t of 8 degrees of freedom
    barely = confidence_limits(mean, stderr, np.full(1, 1e-4), 9, delta=0.025, upper=True)
    np.testing.assert_allclose(barely, high, rtol=1e-4)


def test_the_transformation_is_halls(seed):
    """g(T) = T + a (T^2 / 3 + 1 / 6) + a^2 T^3 / 27 of the limits is the quantile."""
    mean, stderr, skew, count = 1.0, 0.3, 1.7 + seed, 40
    limit = confidence_limits(
        np.asarray([mean]), np.asarray([stderr]), np.asarray([skew]), count, delta=0.1, upper=False
    )[0]
    a, T = skew / math.sqrt(count), (mean - limit) / stderr
    np.testing.assert_allclose(T + a * (T**2 / 3 + 1 / 6) + a**2 * T**3 / 27, 1.303639, rtol=1e-6)


def test_one_heavy_tail_takes_the_intervals_of_all_members():
    dice = np.random.default_rng(0)
    totals = dice.exponential(size=(3, 256))
    assert np.all(np.isfinite(estimate_of(totals).interval))
    assert estimate_of(totals).doubt == ""
    totals[1, 17] = 1e9
    estimate = estimate_of(totals)
    assert not np.any(np.isfinite(estimate.interval))
    assert estimate.worst_interval == (-math.inf, math.inf)
    assert estimate.upper_limit(0.05) == math.inf
    assert "member 1" in estimate.doubt
    assert not np.any(np.isfinite(estimate.subset([0, 2]).interval))
    np.testing.assert_allclose(estimate.share_diverged, [0, 1 / 256, 0])


def test_too_few_rollouts_claim_nothing_and_say_so():
    estimate = estimate_of(np.random.default_rng(0).exponential(size=(2, 64)))
    assert not np.any(np.isfinite(estimate.interval))
    assert "64 rollouts are too few" in estimate.doubt


def test_an_infinite_mean_is_known_and_harms_no_other():
    totals = np.random.default_rng(0).exponential(size=(2, 256))
    totals[1] = math.inf
    with np.errstate(invalid="ignore"):
        estimate = estimate_of(totals)
    assert np.all(np.isfinite(estimate.interval[0]))
    assert np.all(estimate.interval[1] == math.inf)
    assert estimate.share_diverged[1] == 1


def test_the_worst_interval_holds_though_the_member_is_selected(seed):
    """Equal means on independent noise: the largest of the estimates is well above the truth."""
    dice, covered = np.random.default_rng(seed), 0
    for _ in range(100):
        low, high = estimate_of(dice.exponential(size=(20, 256))).worst_interval
        covered += low <= 1.0 <= high
    assert covered / 100 > least_share(0.95, 100)


def test_quantile_intervals_hold_whatever_the_law(seed):
    dice = np.random.default_rng(seed)
    totals = dice.pareto(0.5, (REPETITIONS, 100))  # not even a mean
    truth = np.asarray([(1 - share) ** -2.0 - 1 for share in (0.5, 0.9)])
    estimate = estimate_of(totals)
    low, high = np.moveaxis(estimate.quantile_interval, 2, 0)
    assert np.all(np.mean((low <= truth) & (truth <= high), axis=0) > least_share(0.95, REPETITIONS))
    assert np.all((low <= estimate.quantiles) & (estimate.quantiles <= high))


def test_few_rollouts_do_not_bound_a_high_quantile():
    (median, most) = estimate_of(np.arange(8.0)[None]).quantile_interval[0]
    np.testing.assert_array_equal(median, [0, 7])  # P = 2 / 2^8 that all are on one side
    np.testing.assert_array_equal(most, [4, math.inf])


def test_the_average_knows_that_members_share_noise():
    noise = np.random.default_rng(0).normal(size=300)
    estimate = estimate_of(np.stack([5 + noise, 7 - noise]))
    average = estimate.averaged()
    np.testing.assert_allclose((average.mean[0], estimate.average), 6)
    np.testing.assert_allclose((average.stderr[0], estimate.average_stderr), 0, atol=1e-12)
    assert isinstance(average, AbstractEstimate)


def test_a_subset_keeps_the_order_it_is_asked_for():
    totals = np.random.default_rng(0).exponential(size=(3, 300)) * np.asarray([[1.0], [2.0], [3.0]])
    estimate = estimate_of(totals)
    np.testing.assert_array_equal(estimate.subset([2, 0]).totals, totals[[2, 0]])
    np.testing.assert_array_equal(estimate.subset([2, 0]).mean, estimate.mean[[2, 0]])
