import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation import find_worst
from lqgap.evaluation.worst import Search
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.progress import time_budget
from lqgap.simulators import Ball, ParameterBox


def build(pole, gain):
    return lg.LQG([[pole]], [[gain]], [[1.0]])


def build_plainly(pole, gain):
    return build(float(pole), float(gain))


def exact_gaps(policy, members):
    return np.asarray(jax.vmap(lambda plant: lg.exact_gap(policy, plant, horizon=30))(members.systems))


@pytest.mark.parametrize("build_fn", [build, build_plainly])
@pytest.mark.parametrize(
    "ranges",
    [
        {"pole": (0.5, 0.95), "gain": (0.5, 2.0)},
        {"pole": (0.7, 0.7), "gain": (0.5, 2.0)},
        {"pole": [0.5, 0.7, 0.95], "gain": (0.5, 2.0)},
    ],
    ids=["two intervals", "one interval", "choices"],
)
def test_no_member_of_a_fine_grid_is_worse_than_what_is_found(build_fn, ranges):
    family = ParameterBox(build_fn, ranges)
    policy = StationaryLQG(build(0.7, 1.0))
    found = find_worst(policy, family, key=jax.random.key(0), horizon=30, num_rollouts=8)
    # The search climbs the mean of 8 rollouts, whose maximiser need not be that of the gap itself.
    worst = exact_gaps(policy, family.grid(21)).max()
    assert exact_gaps(policy, found.members).max() > 0.98 * worst
    assert np.all(np.diff(found.gaps.mean) <= 0)
    with time_budget(1e-9) as budget:
        cut = find_worst(policy, family, key=jax.random.key(0), horizon=30, num_rollouts=8)
    assert budget.is_cut
    assert 0.5 * worst < exact_gaps(policy, cut.members).max() <= 1.001 * worst


def build_hidden(place, gain):
    return build(0.95 - 2 * (place - 0.37) ** 2 - 2 * (gain - 0.8) ** 2, 1.0)


def build_hidden_plainly(place, gain):
    return build_hidden(float(place), float(gain))


@pytest.mark.parametrize("build_fn", [build_hidden, build_hidden_plainly])
def test_the_worst_member_is_found_inside_of_the_ranges(build_fn, seed):
    family = ParameterBox(build_fn, {"place": (0.0, 1.0), "gain": (0.2, 1.2)})
    policy = StationaryLQG(build(0.3, 1.0))
    found = find_worst(policy, family, key=jax.random.key(seed), horizon=30, num_rollouts=8)
    np.testing.assert_allclose(found.members.parameters[0], [0.37, 0.8], atol=0.02)


@pytest.mark.parametrize("gain", [(1.0, 1.0), (0.3, 1.7)])
def test_a_range_without_width_is_not_left(gain):
    ranges = {"pole": (0.5, 0.5), "gain": gain}
    found = find_worst(
        StationaryLQG(build(0.5, 1.0)), ParameterBox(build, ranges), key=jax.random.key(0), horizon=3
    )
    for values, (low, high) in zip(np.asarray(found.members.parameters).T, ranges.values(), strict=True):
        assert np.all((low <= values) & (values <= high))


def test_where_the_task_goes_on_the_worst_is_that_of_such_gaps():
    family = ParameterBox(build, {"pole": (0.5, 0.95), "gain": (0.5, 2.0)})
    policy = StationaryLQG(build(0.7, 1.0))
    found = find_worst(policy, family, key=jax.random.key(0), horizon=30, num_rollouts=64, ends=False)
    exact = float(lg.exact_gap(policy, found.members[0], horizon=30, ends=False))
    assert abs(found.worst - exact) < 4 * found.gaps.worst_stderr


def test_a_search_begins_where_it_is_told_and_needs_no_derivative():
    """A climber that may not climb stays where it is."""
    family = ParameterBox(build_hidden, {"place": (0.0, 1.0), "gain": (0.2, 1.2)})
    policy = StationaryLQG(build(0.3, 1.0))
    starts = np.array([[0.1, 0.3], [0.9, 1.1]])
    for num_climbs, expected, tolerance in ((0, starts[1], 0.0), (8, [0.37, 0.8], 0.1)):
        search = Search(policy, family, jax.random.key(0), 30, 8, num_climbs=num_climbs, by_derivative=False)
        found = search.climb_from(starts, search.gaps(starts))
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=tolerance)


def test_members_without_an_optimum_are_passed_over():
    family = ParameterBox(lambda pole, gain: build(1.1, gain), {"pole": (0.0, 1.0), "gain": (0.0, 1.0)})
    search = Search(StationaryLQG(build(1.1, 0.5)), family, jax.random.key(0), 30, 8, ends=False)
    gaps = search.gaps(np.array([[0.5, 0.5], [0.5, 0.0], [0.5, 0.4]]))
    assert gaps[1] == -np.inf
    assert np.all(np.isfinite(gaps[[0, 2]]))


def test_gaps_of_what_is_found_are_those_on_fresh_noise():
    family = ParameterBox(build, {"pole": (0.5, 0.95), "gain": (0.5, 2.0)})
    policy = StationaryLQG(build(0.7, 1.0))
    found = find_worst(policy, family, key=jax.random.key(0), horizon=30, num_rollouts=64)
    difference = (found.gaps.mean - exact_gaps(policy, found.members)) / found.gaps.stderr
    # All members meet the same noise, so that these are nearly one standard normal number.
    assert np.abs(difference).max() < 4


def test_the_worst_of_a_ball_belongs_to_it():
    family = Ball(build(0.7, 1.0), radius={"A": 0.2, "B": 0.3}, norm="spectral")
    bank = ModelBank(family.sample(2, key=jax.random.key(1)).systems, horizon=6)
    found = find_worst(bank, family, key=jax.random.key(0), horizon=6, num_rollouts=8)
    assert np.all(family.is_inside(np.asarray(found.members.parameters)))
    everywhere = lg.gap(bank, family.grid(9), horizon=6, key=jax.random.key(2), num_rollouts=256)
    assert found.worst > 0.9 * everywhere.worst


@pytest.mark.usefixtures("as_users_run_it")
def test_a_finite_class_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match=r"family is a .*, expected .*AbstractFamily"):
        find_worst(StationaryLQG(build(0.7, 1.0)), build(0.7, 1.0), key=jax.random.key(0), horizon=3)
