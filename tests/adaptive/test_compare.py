import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import FilterBank, run
from lqgap.adaptive.compare import mean_over_truths, measure, pick_truths
from lqgap.policies import StationaryLQG
from lqgap.simulators import Finite

SEEDS = (3, 0, 7)


@pytest.fixture(scope="module")
def springs():
    return lg.plants.mass_spring_damper().grid(2)


def test_every_run_is_that_of_its_seed_alone(springs):
    found = measure(FilterBank(springs), springs, horizon=300, seeds=SEEDS)
    assert found.seeds == SEEDS
    for (_, member), traces in zip(found.truths.items(), found.traces, strict=True):
        alone = run(FilterBank(springs), springs[member], key=jax.random.key(7), horizon=300)
        np.testing.assert_allclose(traces[2].excess[-1], alone.excess[-1], rtol=1e-8)


def test_noise_is_common_to_all_policies_and_lasts_longer_than_a_horizon(springs):
    """What a controller does not change: the cost of the optimal one, on its own plant."""
    middle = {"middle": 2}
    short, long = (
        measure(StationaryLQG(springs[2]), springs, horizon=horizon, seeds=SEEDS, truths=middle)
        for horizon in (200, 700)
    )
    bank = measure(FilterBank(springs.subset([2])), springs, horizon=200, seeds=SEEDS, truths=middle)
    for number in range(3):
        costs = [found.traces[0][number].regret_by_cost for found in (short, long, bank)]
        np.testing.assert_allclose(costs[1][:201], costs[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(costs[2], costs[0], rtol=1e-6, atol=1e-6)
    assert long.mean[-1] < 1e-12


def test_truths_are_the_middle_and_the_extremes_of_the_optimal_cost(springs):
    J = np.asarray(springs.optima().J)
    truths = pick_truths(springs)
    assert sorted(truths.values()) == sorted({2, int(J.argmin()), int(J.argmax())})
    named = {name: index for names, index in truths.items() for name in names.split(", ")}
    assert named == {"middle": 2, "lowest J": int(J.argmin()), "highest J": int(J.argmax())}


def test_the_middle_of_a_grid_with_an_even_number_of_points_is_inside_of_all_ranges():
    """The index in the middle of 4 x 4 members is on the edge of the second parameter."""
    members = lg.plants.mass_spring_damper().grid(4)
    (middle,) = [index for names, index in pick_truths(members).items() if "middle" in names]
    values = np.asarray(members.parameters)
    assert np.all((values.min(axis=0) < values[middle]) & (values[middle] < values.max(axis=0)))
    shuffled = members.subset(np.random.default_rng(0).permutation(16))
    (again,) = [index for names, index in pick_truths(shuffled).items() if "middle" in names]
    off = [
        abs(each - values.mean(axis=0)) for each in (values[middle], np.asarray(shuffled.parameters)[again])
    ]
    np.testing.assert_allclose(*off, rtol=1e-9)


def test_the_middle_of_members_without_parameters_has_the_median_cost():
    costs = lg.plants.mass_spring_damper().grid(4)
    order = np.argsort(costs.optima().J)[[0, 15, 1, 7, 2]]
    (middle,) = [
        i for names, i in pick_truths(Finite([costs[int(i)] for i in order])).items() if "middle" in names
    ]
    assert order[middle] == order[4]


def test_means_are_over_truths_of_runs_that_held_and_seeds_count_once():
    excess = np.array([[1.0, 3.0, 100.0], [10.0, 20.0, 30.0]])
    is_held = np.array([[True, True, False], [True, True, True]])
    mean, stderr = mean_over_truths(excess, is_held)
    assert mean == (2 + 20) / 2
    deviations = np.array([-1 / 2 - 10 / 3, 1 / 2 + 0, 0 + 10 / 3]) / 2
    np.testing.assert_allclose(stderr, np.sqrt(3 / 2 * np.sum(deviations**2)))


def test_the_standard_error_is_that_of_seed_means_where_all_runs_held():
    excess = np.random.default_rng(0).normal(size=(3, 40)) + np.random.default_rng(1).normal(size=40)
    mean, stderr = mean_over_truths(excess, np.ones((3, 40), dtype=bool))
    by_seed = excess.mean(axis=0)
    np.testing.assert_allclose([mean, stderr], [by_seed.mean(), by_seed.std(ddof=1) / np.sqrt(40)])


def test_growth_is_shown_to_the_last_step_and_divergence_is_told():
    truth, wrong = (lg.LQG([[0.9]], [[gain]], [[1.0]], R=[[1e-3]]) for gain in (1.0, -1.0))
    found = measure(StationaryLQG(wrong), truth, horizon=100, seeds=SEEDS)
    assert found.steps[-1] == 100
    assert all(trace.diverged_at is not None for trace in found.traces[0])
    assert np.isnan(found.mean[-1])


@pytest.mark.parametrize(("seeds", "message"), [((1, 1), "each once"), ((1,), "two"), ((-1, 2), "whole")])
def test_bad_seeds_are_named(springs, seeds, message):
    with pytest.raises(lg.InvalidArgumentError, match=message):
        measure(FilterBank(springs), springs, horizon=30, seeds=seeds)
