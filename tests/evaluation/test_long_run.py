import functools

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation.long_run import excess_in_the_long_run
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.progress import time_budget


@functools.cache
def members():
    return lg.simulators.Finite(
        [lg.LQG([[0.9, 0.2], [0.0, 0.7]], [[0.0], [b]], [[1.0, 0.0]]) for b in (0.6, 1.4)]
    )


def test_the_first_horizon_is_that_of_the_gap_and_all_together_that_of_a_long_one():
    policy, horizon = StationaryLQG(members()[0]), 30
    found = excess_in_the_long_run(
        policy, members(), horizon=horizon, num_horizons=4, key=jax.random.key(0), num_rollouts=2000
    )
    assert found.shape == (4, 2, 2000)
    for number in range(2):
        exact = [
            float(lg.exact_gap(policy, members()[number], horizon=h, ends=False))
            for h in (horizon, 4 * horizon + 3)
        ]
        for total, wanted in zip((found[0, number], np.sum(found[:, number], axis=0)), exact, strict=True):
            assert abs(np.mean(total) - wanted) < 5 * np.std(total) / np.sqrt(2000) + 1e-12


def test_what_is_learned_in_one_horizon_is_known_in_the_next():
    bank = ModelBank(members().systems)
    found = excess_in_the_long_run(
        bank, members(), horizon=20, num_horizons=3, key=jax.random.key(1), num_rollouts=200
    )
    first, second, third = np.mean(found, axis=2)
    assert np.all(second < first)
    assert np.all(third < first)


def test_a_loop_that_diverges_is_seen_to():
    unstable = lg.LQG([[1.3]], [[1.0]], [[1.0]])
    policy = StationaryLQG(lg.LQG([[1.3]], [[-1.0]], [[1.0]]))
    found = excess_in_the_long_run(policy, unstable, horizon=50, num_horizons=30, key=jax.random.key(0))
    assert np.all(found[1] > 1e3 * found[0])
    assert np.all(np.isinf(found[-1]))
    with time_budget(1e-9) as budget:
        cut = excess_in_the_long_run(policy, unstable, horizon=50, num_horizons=30, key=jax.random.key(0))
    assert budget.is_cut
    np.testing.assert_array_equal(cut, found[:2])


@pytest.mark.usefixtures("as_users_run_it")
def test_a_policy_that_ends_has_no_long_run_beyond_its_end():
    policy = ModelBank(members().systems, horizon=5)
    with pytest.raises(lg.InvalidArgumentError, match=r"made for steps 0\.\.5"):
        excess_in_the_long_run(policy, members(), horizon=4, num_horizons=2, key=jax.random.key(0))
