"""What holds for every input: well-posed problems are solved, malformed ones raise an LqgapError."""

import hypothesis
import hypothesis.extra.numpy as hnp
import jax
import numpy as np
import pytest
from examples import examples
from hypothesis import strategies as st

import lqgap
from lqgap import systems
from lqgap.errors import LqgapError

ENTRIES = st.floats(-3, 3, allow_nan=False).map(lambda x: round(x, 3))
# A few sizes only: each new one is compiled.
SIZES = st.sampled_from([(1, 1, 1), (2, 1, 1), (3, 2, 1), (3, 1, 2)])


@st.composite
def matrices(draw, sizes=SIZES):
    """Any A, B, C with entries of order one, and definite weights."""
    n, m, p = draw(sizes)
    A, B, C = (draw(hnp.arrays(float, shape, elements=ENTRIES)) for shape in ((n, n), (n, m), (p, n)))
    weights = {}
    for name, size in {"Q": p, "R": m, "W": n, "V": p, "S0": n}.items():
        root = draw(hnp.arrays(float, (size, size), elements=ENTRIES))
        weights[name] = root @ root.T + 0.1 * np.eye(size)
    return dict(A=A, B=B, C=C, **weights)


@examples(300)
@hypothesis.given(matrices())
def test_every_plant_is_either_solved_or_refused(problem):
    plant = lqgap.LQG(**problem)
    try:
        optimum = lqgap.solve(plant)
    except LqgapError:
        # Only plants that are not stable by themselves can be hopeless here: Q, W > 0.
        assert np.max(np.abs(np.linalg.eigvals(problem["A"]))) > 1 - 1e-6
        return
    A, B, C, Q, R, W, V = (np.asarray(problem[name]) for name in ("A", "B", "C", "Q", "R", "W", "V"))
    P, Sigma, S = (np.asarray(X) for X in (optimum.P, optimum.Sigma, optimum.S))
    right = A.T @ P @ A + C.T @ Q @ C - A.T @ P @ B @ np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    assert np.linalg.norm(P - right) <= 1e-6 * np.linalg.norm(P)
    right = A @ Sigma @ A.T + W - A @ Sigma @ C.T @ np.linalg.solve(S, C @ Sigma @ A.T)
    assert np.linalg.norm(Sigma - right) <= 1e-6 * np.linalg.norm(Sigma)
    for closed_loop in (A - B @ optimum.K, A - optimum.F @ C):
        assert np.max(np.abs(np.linalg.eigvals(closed_loop))) < 1
    for X in (P, Sigma, optimum.Sigma_filtered):
        assert np.linalg.eigvalsh(X)[0] >= -1e-9 * np.linalg.norm(X)
    unavoidable = np.trace(Q @ V)
    assert unavoidable * (1 - 1e-12) <= optimum.J
    assert all(np.all(np.isfinite(leaf)) for leaf in (optimum.K, optimum.L, optimum.J))


@hypothesis.settings(max_examples=100)
@hypothesis.given(matrices())
def test_the_finite_optimum_exists_for_every_plant_and_is_at_most_the_cost_of_doing_nothing(problem):
    plant = lqgap.LQG(**problem)
    value = lqgap.solve_finite(plant, horizon=4).value
    covariance, idle = np.asarray(problem["S0"]), 0.0
    for _ in range(5):
        idle += np.trace(problem["Q"] @ (problem["C"] @ covariance @ problem["C"].T + problem["V"]))
        covariance = problem["A"] @ covariance @ problem["A"].T + problem["W"]
    assert 5 * np.trace(problem["Q"] @ problem["V"]) * (1 - 1e-9) <= value <= idle * (1 + 1e-9)


JUNK = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.booleans(),
    st.integers(-5, 9),
    st.just(10**20),
    st.floats(),
    st.complex_numbers(),
    st.lists(st.lists(st.floats(), max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.floats(), max_size=2),
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.complex128, object, "U3"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ),
    hnp.arrays(float, st.tuples(st.integers(0, 3), st.integers(0, 3)), elements=st.floats()),
)
FIELDS = st.sampled_from(["A", "B", "C", "Q", "R", "W", "V", "S0"])


@examples(1000)
@hypothesis.given(matrices(sizes=st.just((2, 1, 1))), FIELDS, JUNK)
@pytest.mark.usefixtures("as_users_run_it")
def test_junk_in_any_field_is_refused_or_harmless(problem, field, junk):
    try:
        plant = lqgap.LQG(**{**problem, field: junk})
        optimum = lqgap.solve(plant)
    except LqgapError:
        return
    assert plant.A.ndim == 2
    assert np.isfinite(optimum.J)
    assert optimum.spectral_radius < 1


CALLS = {
    "solve": lambda plant, junk: lqgap.solve(junk),
    "solve_finite plant": lambda plant, junk: lqgap.solve_finite(junk, horizon=1),
    "solve_finite horizon": lambda plant, junk: lqgap.solve_finite(plant, horizon=junk),
    "stack": lambda plant, junk: lqgap.stack([plant, junk]),
    "log_likelihood y": lambda plant, junk: lqgap.log_likelihood(plant, junk, np.zeros((2, 1))),
    "log_likelihood u": lambda plant, junk: lqgap.log_likelihood(plant, np.zeros((2, 1)), junk),
    "change_coordinates": lambda plant, junk: systems.change_coordinates(plant, junk),
    "delay_input": lambda plant, junk: systems.delay_input(plant, junk),
    "zero_order_hold A": lambda plant, junk: systems.zero_order_hold(junk, plant.B, dt=0.1),
    "zero_order_hold B": lambda plant, junk: systems.zero_order_hold(plant.A, junk, dt=0.1),
    "zero_order_hold dt": lambda plant, junk: systems.zero_order_hold(plant.A, plant.B, dt=junk),
    "accumulate_noise": lambda plant, junk: systems.accumulate_noise(plant.A, junk, dt=0.1),
    "bias xhat": lambda plant, junk: lqgap.systems.bias(lqgap.solve(plant), plant, junk, [1.0]),
    "value_target u": lambda plant, junk: lqgap.systems.value_target(
        lqgap.solve(plant), plant, [1.0, 1.0], junk
    ),
    "value_target optimum": lambda plant, junk: lqgap.systems.value_target(junk, plant, [1.0, 1.0], [1.0]),
    "markov_parameters": lambda plant, junk: systems.markov_parameters(plant, length=junk),
}
PLANT = dict(A=np.diag([0.9, 0.5]), B=np.ones((2, 1)), C=np.ones((1, 2)))


@pytest.mark.parametrize("call", sorted(CALLS))
@hypothesis.settings(
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(junk=JUNK)
@pytest.mark.usefixtures("as_users_run_it")
def test_junk_in_any_argument_is_refused_or_harmless(call, junk):
    try:
        answer = CALLS[call](lqgap.LQG(**PLANT), junk)
    except LqgapError:
        return
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(answer))


@hypothesis.given(st.integers(-300, 300), FIELDS)
@hypothesis.settings(max_examples=150)
def test_extreme_units_are_solved_or_refused_but_never_answered_with_nan(exponent, field):
    problem = {name: np.array(matrix) for name, matrix in PLANT.items()}
    sizes = {"Q": 1, "R": 1, "W": 2, "V": 1, "S0": 2}
    problem[field] = 10.0**exponent * problem.get(field, np.eye(sizes.get(field, 1)))
    try:
        optimum = lqgap.solve(lqgap.LQG(**problem))
    except LqgapError:
        return
    assert all(np.all(np.isfinite(leaf)) for leaf in (optimum.P, optimum.K, optimum.L, optimum.J))
