import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.training.checkpoint import Checkpoint


@functools.cache
def state():
    return {"a": jnp.asarray([1.0, 1 / 3]), "n": jnp.asarray(7), "f": jnp.ones(2, jnp.float32)}


def test_a_state_comes_back_bit_for_bit(tmp_path):
    path = tmp_path / "deep" / "state.safetensors"
    assert Checkpoint(path, "x").load(state()) is None
    Checkpoint(path, "x").save(state(), [{"step": 1.0}])
    restored, history = Checkpoint(path, "x").load(jax.tree.map(jnp.zeros_like, state()))
    for before, after in zip(jax.tree.leaves(state()), jax.tree.leaves(restored), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    assert history == [{"step": 1.0}]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.usefixtures("as_users_run_it")
def test_what_belongs_to_another_or_is_damaged_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    Checkpoint(path, "x").save(state(), [])
    with pytest.raises(lg.InvalidArgumentError, match="another training"):
        Checkpoint(path, "y").load(state())
    with pytest.raises(lg.CorruptFileError, match="lacks array"):
        Checkpoint(path, "x").load({**state(), "z": jnp.ones(3)})
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(lg.CorruptFileError, match="damaged"):
        Checkpoint(path, "x").load(state())
