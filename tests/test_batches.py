import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lqgap.batches import batch_of_one, join, take


@functools.cache
def example():
    return {"a": jnp.arange(12.0).reshape(4, 3), "b": jnp.arange(4)}


@pytest.mark.parametrize("rows", [2, -1, [3, 0], np.asarray([1, 1, 2])])
def test_rows_are_those_of_every_array(rows):
    taken = take(example(), rows)
    for name, leaf in example().items():
        np.testing.assert_array_equal(taken[name], np.asarray(leaf)[rows])
        assert taken[name].dtype == leaf.dtype
    traced = jax.jit(lambda batch: take(batch, np.asarray(rows)))(example())
    np.testing.assert_array_equal(traced["a"], taken["a"])


def test_numpy_arrays_stay_such_and_keys_are_rows_too():
    keys = jax.random.split(jax.random.key(0), 3)
    rows, chosen = take((np.arange(3), keys), 1)
    assert isinstance(rows, np.generic)
    assert chosen == keys[1]
    one = batch_of_one({"a": np.ones(2), "key": keys[0]})
    assert one["a"].shape == (1, 2)
    assert one["key"].shape == (1,)
    assert jax.jit(batch_of_one)(jnp.ones(2)).shape == (1, 2)


def test_batches_are_joined_in_order():
    joined = join([take(example(), [2, 3]), take(example(), [0])])
    np.testing.assert_array_equal(joined["b"], [2, 3, 0])
    traced = jax.jit(lambda batch: join([batch, batch]))(example())
    np.testing.assert_array_equal(traced["a"], np.tile(np.asarray(example()["a"]), (2, 1)))


def test_nothing_is_compiled(caplog):
    batch = jnp.asarray(np.ones((7, 5)))
    with jax.log_compiles(), caplog.at_level("WARNING"):
        join([take(batch, [3, 1]), take(batch, [0])])
    assert "Compiling" not in caplog.text
