import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError, PrecisionError

A, B, C = np.eye(2) * 0.5, np.ones((2, 1)), np.ones((1, 2))


def test_what_is_left_out_is_the_identity():
    plant = lqgap.LQG(A, B, C)
    for name, size in {"Q": 1, "R": 1, "W": 2, "V": 1, "S0": 2}.items():
        np.testing.assert_array_equal(getattr(plant, name), np.eye(size))
    assert (plant.num_states, plant.num_inputs, plant.num_outputs) == (2, 1, 1)


def test_whole_numbers_and_nested_lists_are_read_as_doubles():
    plant = lqgap.LQG([[1, 2], [3, 4]], [[1], [0]], [[0, 1]], Q=[[2]])
    assert plant.A.dtype == plant.Q.dtype == jnp.float64


def test_a_performance_output_costs_its_square():
    rng = np.random.default_rng(0)
    C1, D12 = rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    plant = lqgap.LQG(A, B, C, Q=[[0.0]], **lqgap.performance_output(C1, D12))
    x, y, u = (jnp.asarray(rng.normal(size=size)) for size in (2, 1, 1))
    np.testing.assert_allclose(plant.cost(x, y, u), np.sum((C1 @ x + D12 @ u) ** 2), rtol=1e-12)
    with pytest.raises(InvalidSystemError, match="R is not positive definite"):
        lqgap.LQG(A, B, C, **lqgap.performance_output(C1, 0 * D12))


MALFORMED = {
    "A is not square": (dict(A=np.ones((2, 3))), r"A has shape \(2, 3\), expected \(2, 2\)"),
    "A is a vector": (dict(A=np.ones(2)), r"A has shape \(2,\), expected a matrix"),
    "A is empty": (dict(A=np.ones((0, 0))), "A has shape"),
    "A is ragged": (dict(A=[[1, 2], [3]]), "A is not an array of numbers"),
    "A is text": (dict(A="plant"), "A holds"),
    "A is nothing": (dict(A=None), "A holds object entries"),
    "A is complex": (dict(A=A * 1j), "A holds complex128 entries, expected real numbers"),
    "A has NaN": (dict(A=A * np.nan), "A has entries that are NaN or infinite"),
    "B has infinity": (dict(B=B * np.inf), "B has entries that are NaN or infinite"),
    "B has other rows": (dict(B=np.ones((3, 1))), r"B has shape \(3, 1\), expected \(2, 1\): there are 2 states"),
    "C has other columns": (dict(C=np.ones((1, 3))), r"C has shape \(1, 3\), expected \(1, 2\)"),
    "Q is of the wrong size": (dict(Q=np.eye(2)), r"Q has shape \(2, 2\), expected \(1, 1\)"),
    "Q is indefinite": (dict(Q=[[-1.0]]), "Q is not positive semidefinite: its smallest eigenvalue is -1"),
    "R is zero": (dict(R=[[0.0]]), "R is not positive definite: its smallest eigenvalue is 0"),
    "V and C W C' are zero": (dict(V=[[0.0]], W=np.zeros((2, 2))), "V is not positive definite, and nor is C W C' [+] V"),
    "V is indefinite": (dict(V=[[-1.0]]), "V is not positive semidefinite"),
    "Qx is indefinite": (dict(Qx=-2 * np.eye(2)), "the cost is not positive semidefinite"),
    "N is too large": (dict(N=[[2.0], [2.0]]), "some state and input together cost less than nothing"),
    "N is of another size": (dict(N=[[2.0, 1.0]]), "N has shape"),
    "W is asymmetric": (dict(W=[[1.0, 0.5], [0.0, 1.0]]), "W is not symmetric: entries differ .* by up to 0.5"),
    "S0 is indefinite": (dict(S0=[[1.0, 2.0], [2.0, 1.0]]), "S0 is not positive semidefinite"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_malformed_matrices_raise_an_error_that_names_them(name):
    change, message = MALFORMED[name]
    with pytest.raises(InvalidSystemError, match=message):
        lqgap.LQG(**{"A": A, "B": B, "C": C, **change})


def test_a_weight_that_is_semidefinite_up_to_rounding_is_accepted():
    root = np.array([[1.0, 3.0], [2.0, 6.0]]) / 7
    lqgap.LQG(A, B, C, W=root @ root.T - 1e-17 * np.eye(2), S0=np.zeros((2, 2)))


def test_thirty_two_bit_mode_raises_and_says_how_to_leave_it():
    enable_x64 = (
        jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    )  # until JAX 0.8
    with enable_x64(False), pytest.raises(PrecisionError, match=r"lqgap\.enable_x64\(\)"):
        lqgap.LQG(A, B, C)


def test_a_build_function_can_be_jitted_mapped_and_differentiated():
    def build(gain):
        return lqgap.LQG([[0.9, gain], [0.0, 0.5]], B * gain, C)

    gains = jnp.asarray([0.5, 1.0, 2.0])
    batch = jax.jit(jax.vmap(build))(gains)
    assert batch.A.shape == (3, 2, 2)
    np.testing.assert_allclose(batch.B[2], build(2.0).B)
    slope = jax.grad(lambda gain: lqgap.solve(build(gain)).J)(1.0)
    numeric = (lqgap.solve(build(1 + 1e-5)).J - lqgap.solve(build(1 - 1e-5)).J) / 2e-5
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)


def test_shapes_are_checked_under_tracing_too():
    with pytest.raises(InvalidSystemError, match=r"B has shape \(1, 1\)"):
        jax.jit(lambda gain: lqgap.LQG(A, [[gain]], C))(1.0)


def test_a_stack_is_a_batch_of_its_plants():
    plants = [random_plant(seed) for seed in range(3)]
    batch = lqgap.stack(plants)
    np.testing.assert_array_equal(batch.W[1], plants[1].W)
    assert (batch.num_states, batch.num_inputs, batch.num_outputs) == (3, 2, 2)


@pytest.mark.parametrize(
    ("plants", "message"),
    [
        ([], r"plants is \[\], expected a list"),
        ([random_plant(0), random_plant(0, states=4)], r"plants\[1\] has .* = \(4, 2, 2\), expected \(3, 2, 2\)"),
        ([random_plant(0), "plant"], r"plants\[1\] is a str, expected an lqgap.LQG"),
        (lambda: [lqgap.stack([random_plant(0)])], r"plants\[0\] is a batch of LQGs"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("as_users_run_it")
def test_what_cannot_be_stacked_raises(plants, message):
    with pytest.raises(InvalidArgumentError, match=message):
        lqgap.stack(plants() if callable(plants) else plants)


def test_matrices_by_name_make_the_same_plant():
    plant = random_plant(0)
    again = lqgap.LQG(**plant.matrices())
    for name, matrix in plant.matrices().items():
        np.testing.assert_array_equal(getattr(again, name), matrix)


def test_a_cost_beyond_double_precision_is_refused_by_name():
    with pytest.raises(lqgap.InvalidSystemError, match="C'QC is beyond double precision"):
        lqgap.LQG([[1.0]], [[1.0]], [[1e300]], Q=[[1e12]])
    box = lqgap.ParameterBox(lambda c: lqgap.LQG([[1.0]], [[1.0]], [[c]]), {"c": (1.0, 1e200)})
    with pytest.raises(lqgap.InvalidSystemError, match=r"C'QC of member 1 \(c = 1e\+200\) is beyond"):
        box.grid(2)
