import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lqgap.batches import batch_of_one, in_turn, join, rarely, take


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


def test_what_is_in_turn_is_so_in_the_compiled_program_and_is_the_same():
    """The second factorisation has the first among what it is computed from; a barrier leaves no trace."""

    def both(X, Y):
        first = jnp.linalg.cholesky(X)
        return first, jnp.linalg.cholesky(in_turn(first, Y))

    X = jnp.tile(4 * jnp.eye(3), (2, 1, 1))
    compiled = jax.jit(jax.vmap(both)).lower(X, 2 * X).compile()
    lines = re.findall(r"^\s*(?:ROOT )?(%\S+) = .*?[\])}] [\w-]+\((.*?)\)", compiled.as_text(), re.MULTILINE)
    operands = {name: re.findall(r"%[\w.-]+", text) for name, text in lines}

    def needs(name):
        return {name}.union(*(needs(each) for each in operands.get(name, ())))

    found = [name for name in operands if "potrf" in compiled.as_text().split(f"{name} = ")[1].split("\n")[0]]
    assert len(found) == 2
    assert any(one in needs(other) for one, other in (found, found[::-1]))
    np.testing.assert_array_equal(compiled(X, 2 * X)[1], jnp.linalg.cholesky(2 * X))


def test_nothing_is_changed_by_what_came_first_not_even_a_derivative():
    slope = jax.grad(lambda x: in_turn((jnp.asarray(jnp.nan), jnp.asarray(True)), 3 * x))(2.0)
    np.testing.assert_array_equal(slope, 3.0)


def turned(state, when, matrix):
    """Ten steps, at one of which the state is multiplied."""

    def step(state, now):
        return rarely(lambda x, m: m @ x, now == when, state, matrix), None

    return jax.lax.scan(step, state, jnp.arange(10))[0]


def test_what_changes_rarely_changes_where_it_should_also_side_by_side():
    states = jax.random.normal(jax.random.key(0), (2, 3, 4))
    when, matrix = jnp.asarray([[3, 5, 3], [20, 7, 7]]), 2 * jnp.eye(4)[::-1]
    for function in (turned, jax.jit(turned)):
        side_by_side = jax.vmap(jax.vmap(function, in_axes=(0, 0, None)), in_axes=(0, 0, None))
        expected = jnp.where(when[..., None] < 10, jnp.einsum("ij,abj->abi", matrix, states), states)
        np.testing.assert_allclose(side_by_side(states, when, matrix), expected)
    np.testing.assert_allclose(turned(states[0, 0], when[0, 0], matrix), matrix @ states[0, 0])


def test_what_changes_rarely_is_not_computed_at_every_step_side_by_side():
    """A condition per run is a selection, of one for all runs a branch."""
    batch = jax.vmap(turned, in_axes=(0, 0, None))
    program = str(jax.make_jaxpr(batch)(jnp.zeros((3, 4)), jnp.arange(3), jnp.eye(4)))
    product = program.index("dot_general")
    assert "cond[" in program[:product]
