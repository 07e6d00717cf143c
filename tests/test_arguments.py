import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import lqgap as lg
from lqgap.arguments import (
    checked,
    is_concrete,
    read_array,
    read_count,
    read_covariance,
    read_indices,
    read_keys,
    read_list,
    read_positive,
    read_probability,
    read_record,
    read_symmetric,
)
from lqgap.errors import InvalidArgumentError, InvalidSystemError


def test_traced_values_are_not_concrete():
    assert is_concrete([jnp.ones(2), np.ones(2), 1.0, "text"])
    seen = []
    jax.jit(lambda x: seen.append(is_concrete([1.0, x])) or x)(1.0)
    assert seen == [False]


def test_values_are_checked_outside_jit_and_shapes_also_inside():
    with pytest.raises(InvalidSystemError, match="NaN"):
        read_array("X", [[jnp.nan]], num_axes=2)
    inside = jax.jit(lambda x: read_array("X", [[x, 0.0]], num_axes=2))
    assert jnp.isnan(inside(jnp.nan)[0, 0])
    with pytest.raises(InvalidSystemError, match=r"X has shape \(2,\), expected a matrix"):
        jax.jit(lambda x: read_array("X", [x, x], num_axes=2))(1.0)
    with pytest.raises(InvalidSystemError, match="X is not an array of numbers"):
        jax.jit(lambda x: read_array("X", [[x, x], [x]], num_axes=2))(1.0)


def test_a_covariance_comes_out_exactly_symmetric():
    X = np.array([[1.0, 0.3], [0.3 + 1e-12, 2.0]])
    read = read_covariance("X", X, size=2, definite=True, why="")
    np.testing.assert_array_equal(read, read.T)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_definiteness_does_not_depend_on_units(scale):
    read_covariance("X", scale * np.diag([1.0, 1e-6]), size=2, definite=True, why="")
    with pytest.raises(InvalidSystemError, match="X is not positive semidefinite"):
        read_covariance("X", scale * np.diag([1.0, -1e-6]), size=2, definite=False, why="")


def test_counts_and_positive_numbers():
    assert read_count("n", np.int64(3), least=1) == 3
    assert read_positive("dt", 2) == 2.0
    with pytest.raises(InvalidArgumentError, match="n is 0, expected a whole number from 1"):
        read_count("n", 0, least=1)
    with pytest.raises(InvalidArgumentError, match=r"dt is -0\.1, expected a positive number"):
        read_positive("dt", -0.1)


def test_a_long_value_is_shortened_in_the_message():
    with pytest.raises(InvalidSystemError) as raised:
        read_array("X", np.full((50, 50), np.nan), num_axes=2)
    assert len(str(raised.value)) < 200


def test_what_is_definite_in_other_units_of_each_entry_is_definite():
    units = np.diag([1e-8, 1.0, 1e6])
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    read_covariance("X", units @ matrix @ units, size=3, definite=True, why="")
    with pytest.raises(InvalidSystemError, match="X is not positive definite"):
        read_covariance("X", units @ (matrix - 0.6 * np.eye(3)) @ units, size=3, definite=True, why="")


def test_a_rank_deficient_matrix_is_never_definite():
    rng = np.random.default_rng(0)
    for _ in range(50):
        root = rng.normal(size=(3, 2))
        with pytest.raises(InvalidSystemError, match="X is not positive definite"):
            read_covariance("X", root @ root.T, size=3, definite=True, why="")


def test_traced_complex_numbers_are_refused_too():
    with pytest.raises(InvalidSystemError, match="X holds complex128 entries"):
        jax.jit(lambda x: read_array("X", [[x]], num_axes=2))(1j)


def test_a_masked_entry_is_a_lost_one():
    y = np.ma.masked_array([[1.0], [1e6]], mask=[[False], [True]])
    read, _ = read_record(y, np.zeros((2, 1)), num_outputs=1, num_inputs=1)
    np.testing.assert_array_equal(read, [[1.0], [np.nan]])


def test_symmetric_matrices_may_be_indefinite():
    np.testing.assert_array_equal(
        read_symmetric("X", [[0.0, 1.0], [1.0, 0.0]], size=2, why=""), [[0, 1], [1, 0]]
    )
    with pytest.raises(InvalidSystemError, match="X is not symmetric"):
        read_symmetric("X", [[0.0, 1.0], [0.0, 0.0]], size=2, why="")


def test_a_matrix_that_is_not_symmetric_under_tracing_is_nan_and_one_that_is_has_its_derivative():
    def read(x):
        return read_symmetric("X", [[1.0, x], [0.5, 1.0]], size=2, why="")

    assert np.all(np.isnan(jax.jit(read)(0.4)))
    np.testing.assert_array_equal(jax.jacfwd(read)(0.5), [[0.0, 0.5], [0.5, 0.0]])


@pytest.mark.parametrize("value", [0, 1.0, -0.1, float("nan"), [0.5]])
def test_a_probability_lies_between_zero_and_one(value):
    assert read_probability("delta", np.float32(0.25)) == 0.25
    with pytest.raises(InvalidArgumentError, match="delta is"):
        read_probability("delta", value)


def test_keys_are_an_array_or_a_list_of_them():
    keys = jax.random.split(jax.random.key(0), 3)
    assert read_keys(keys) is keys
    assert jnp.all(read_keys([keys[0], keys[1], keys[2]]) == keys)
    for wrong in (keys[0], [], [1], keys[:0], 3):
        with pytest.raises(InvalidArgumentError, match=r"^keys? is"):
            read_keys(wrong)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            [[-1.0, 0, 0], [0, 0.03, 0], [0, 0, 5e11]],
            "not positive semidefinite: its smallest eigenvalue is -1",
        ),
        ([[0.0, 1.0, 0], [1.0, 0.03, 0], [0, 0, 5e11]], "not positive semidefinite"),
        ([[0.0, 1.0, 0], [0, 0.03, 0], [0, 0, 5e11]], "not symmetric: .* by up to 1$"),
        ([[1.0, 1e-3, 0], [1e-3, 1e-7, 0], [0, 0, 1e30]], "not positive semidefinite"),
    ],
)
def test_a_covariance_is_judged_in_the_units_of_each_state(matrix, message):
    with pytest.raises(InvalidSystemError, match=f"W is {message}"):
        read_covariance("W", matrix, size=3, definite=False, why="")
    with pytest.raises(InvalidSystemError, match=f"W is {message}"):
        lg.LQG(0.5 * np.eye(3), np.ones((3, 1)), np.ones((1, 3)), W=matrix)


def test_states_that_are_linked_share_their_rounding():
    rng = np.random.default_rng(0)
    for decades in (3, 6, 9):
        root = np.diag([1.0, 10.0**-decades, 1.0]) @ rng.normal(size=(3, 2))  # of rank two
        read_covariance("W", root @ root.T, size=3, definite=False, why="")
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turned = rotation @ (root @ root.T) @ rotation.T
        read_covariance("W", rotation.T @ turned @ rotation, size=3, definite=False, why="")


def some(
    plant: lg.LQG,
    *,
    y: Float[Array, " output"],  # noqa: F722
    scale: float = 1.0,
    ends: bool = True,
    number: int = 1,
):
    return plant, y, scale, ends, number


@pytest.mark.usefixtures("as_users_run_it")
def test_a_checked_function_reads_its_arguments_by_the_types_it_declares():
    plant, call = lg.LQG([[0.5]], [[1.0]], [[1.0]]), checked(some)
    _, y, *rest = call(plant, y=[1], scale=2, ends=False, number=np.int64(3))
    assert (y.dtype, y.shape, rest) == (np.float64, (1,), [2, False, 3])
    for wrong, message in (
        ({"plant": 3}, "plant is a int, expected an lqgap.systems.LQG: A plant, its noise and its cost"),
        ({"plant": lg.stack([plant])}, r"plant.A has shape \(1, 1, 1\), expected \(state, state\).*jax.vmap"),
        ({"y": [1.0, 2.0]}, r"y has shape \(2,\), expected \(output\)"),
        ({"y": "one"}, "y holds .* expected real numbers"),
        ({"scale": [1.0]}, "scale has shape .* expected a number"),
        ({"ends": "no"}, "ends is 'no', expected True or False"),
        ({"number": 1.5}, "number is 1.5, expected a whole number"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call(**{"plant": plant, "y": [1.0]} | wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n'"):
        call(plant, y=[1.0], n=1)


def test_a_checked_function_may_be_traced_and_pickled():
    plant = lg.LQG([[0.5]], [[1.0]], [[1.0]])
    beliefs = jax.vmap(lg.systems.prior)(lg.stack([plant, plant]))
    assert beliefs.mean.shape == (2, 1)
    assert pickle.loads(pickle.dumps(lg.systems.correct)) is lg.systems.correct  # noqa: S301


@pytest.mark.parametrize("value", [3, None, "one", b"ab", {}, [], iter([]), np.array(1.0)])
def test_a_list_has_entries(value):
    assert read_list("inputs", range(2)) == (0, 1)
    with pytest.raises(InvalidArgumentError, match=r"inputs is .* expected a list with at least one entry"):
        read_list("inputs", value)


@pytest.mark.parametrize("value", [3, None, "01", [2], [-1], [0, 0], [0.0], []])
def test_numbers_of_inputs_are_different_and_below_their_count(value):
    assert read_indices("inputs", np.array([1, 0]), below=2) == (1, 0)
    assert read_indices("inputs", [], below=2, least=0) == ()
    with pytest.raises(InvalidArgumentError, match=r"inputs is .* expected different numbers below 2"):
        read_indices("inputs", value, below=2)
