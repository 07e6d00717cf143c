import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lqgap.batches import join, take

BATCH = {"a": jnp.arange(12.0).reshape(4, 3), "b": jnp.arange(4)}


@pytest.mark.parametrize("rows", [2, -1, [3, 0], np.asarray([1, 1, 2])])
def test_rows_are_those_of_every_array(rows):
    taken = take(BATCH, rows)
    for name, leaf in BATCH.items():
        np.testing.assert_array_equal(taken[name], np.asarray(leaf)[rows])
        assert taken[name].dtype == leaf.dtype
    traced = jax.jit(lambda batch: take(batch, np.asarray(rows)))(BATCH)
    np.testing.assert_array_equal(traced["a"], taken["a"])


def test_batches_are_joined_in_order():
    joined = join([take(BATCH, [2, 3]), take(BATCH, [0])])
    np.testing.assert_array_equal(joined["b"], [2, 3, 0])
    traced = jax.jit(lambda batch: join([batch, batch]))(BATCH)
    np.testing.assert_array_equal(traced["a"], np.tile(np.asarray(BATCH["a"]), (2, 1)))


def test_nothing_is_compiled(caplog):
    batch = jnp.asarray(np.ones((7, 5)))
    with jax.log_compiles(), caplog.at_level("WARNING"):
        join([take(batch, [3, 1]), take(batch, [0])])
    assert "Compiling" not in caplog.text
