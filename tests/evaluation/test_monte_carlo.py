import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lqgap.evaluation.monte_carlo import block_size, rollout_keys, standard_error, sum_rollouts


def test_keys_depend_on_the_rollouts_number_alone():
    key = jax.random.key(0)
    noise, own = rollout_keys(key, jnp.arange(4))
    again, _ = rollout_keys(key, jnp.asarray([2]))
    np.testing.assert_array_equal(jax.random.key_data(noise[2]), jax.random.key_data(again[0]))
    assert not np.any(np.all(jax.random.key_data(noise) == jax.random.key_data(own), axis=1))


def draws(indices, is_counted):
    values = jnp.where(is_counted, jax.vmap(lambda i: jax.random.normal(jax.random.key(i)))(indices), 0.0)
    return (values[None],)


def test_sums_are_the_same_in_blocks_of_any_size():
    values = np.asarray([jax.random.normal(jax.random.key(i)) for i in range(10)])
    for block in (3, 10):
        sums = sum_rollouts(draws, label="", block=block, num_rollouts=10)
        assert sums.count == 10
        np.testing.assert_allclose(sums.mean, values.mean())
        np.testing.assert_allclose(sums.stderr, values.std(ddof=1) / np.sqrt(10))
        np.testing.assert_array_equal(sums.totals, values[None])


def test_a_target_is_met_by_whole_blocks():
    sums = sum_rollouts(draws, label="", block=8, num_rollouts=10, target=0.1)
    assert sums.count % 8 == 0
    assert sums.stderr[0] <= 0.1
    assert 60 < sums.count < 160  # draws of variance one


def test_the_totals_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(sys.modules["lqgap.evaluation.monte_carlo"], "MOST_KEPT", 5)
    assert sum_rollouts(draws, label="", block=3, num_rollouts=10).totals.shape == (1, 5)


@pytest.mark.parametrize("mean", [np.inf, 1e303])
def test_the_standard_error_of_a_mean_whose_square_is_infinite_is_infinite(mean):
    np.testing.assert_array_equal(standard_error(np.asarray([mean]), np.asarray([np.inf]), 3), [np.inf])


def test_blocks_shrink_with_the_class_and_are_never_empty():
    assert block_size(1, 10, 1, 50) == 50
    assert block_size(4, 10, 1, 10_000) == 512
    assert block_size(100_000, 1000, 1, 10) == 1
