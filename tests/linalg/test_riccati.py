import importlib
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from golden.darex import IN_SCOPE, OUT_OF_SCOPE
from random_systems import directional_difference, random_matrices

from lqgap.errors import (
    InvalidSystemError,
    LqgapError,
    NotConvergedError,
    NotDetectableError,
    NotStabilizableError,
)
from lqgap.linalg import riccati_recursion, riccati_step, solve_riccati, spectral_radius
from lqgap.linalg.riccati import REFINED, RESIDUAL_TOLERANCE, solve_each_riccati

SIZES = (1, 2, 3, 4, 5, 8, 12)  # each is compiled once


def random_riccati(rng, *, states, radius):
    inputs = (states + 1) // 2
    (A, B, C), weights = random_matrices(rng, states=states, inputs=inputs, outputs=states, radius=radius)
    Q = C.T @ weights["Q"] @ C
    return A, B, (Q + Q.T) / 2, weights["R"]


def residual(P, A, B, Q, R):
    """The Riccati equation in its printed form, relative to the size of P."""
    P = np.asarray(P)
    right = A.T @ P @ A + Q - A.T @ P @ B @ np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    return np.linalg.norm(P - right) / np.linalg.norm(P)


def test_agrees_with_scipy_python_control_and_slycot_on_300_random_systems():
    control = importlib.import_module("control")  # slow to import
    rng = np.random.default_rng(0)
    for index in range(300):
        radius = 0.999 if index % 10 == 0 else rng.uniform(0.1, 0.999)
        A, B, Q, R = random_riccati(rng, states=SIZES[index % len(SIZES)], radius=radius)
        solution = solve_riccati(A, B, Q=Q, R=R)
        assert solution.spectral_radius < 1
        assert residual(solution.P, A, B, Q, R) < 1e-12
        K_scipy = control.dlqr(A, B, Q, R, method="scipy")[0]
        K_slycot, P_slycot, _ = control.dlqr(A, B, Q, R, method="slycot")
        for P in (scipy.linalg.solve_discrete_are(A, B, Q, R), P_slycot):
            assert np.linalg.norm(solution.P - P) < 1e-9 * np.linalg.norm(P)
        for K in (K_scipy, K_slycot):
            assert np.linalg.norm(solution.K - K) < 1e-8 * max(np.linalg.norm(K), 1)


@pytest.mark.parametrize("name", sorted(IN_SCOPE))
def test_solves_the_benchmark_collection(name):
    A, B, Q, R = (np.asarray(matrix, dtype=float) for matrix in IN_SCOPE[name])
    solution = solve_riccati(A, B, Q=Q, R=R)
    assert residual(solution.P, A, B, Q, R) < 1e-14 * len(A)
    assert spectral_radius(A - B @ solution.K) < 1


@pytest.mark.parametrize("name", sorted(OUT_OF_SCOPE))
def test_what_is_out_of_scope_in_the_collection_raises(name):
    (A, B, Q, R), reason = OUT_OF_SCOPE[name]
    with pytest.raises(InvalidSystemError, match=reason):
        solve_riccati(A, B, Q=Q, R=R)


def test_a_closed_loop_that_almost_touches_the_circle_keeps_its_digits():
    """DAREX 14 is diag(p, 1, 1, 1), p the root of b^2 p^2 + (r - a^2 r - b^2) p - r = 0."""
    A, B, Q, R = IN_SCOPE["darex 14"]
    with localcontext() as context:
        context.prec = 50
        a, b, r = (Decimal(float(number)) for number in (A[0, 0], B[0][0], R[0][0]))
        half = (b * b - r + a * a * r) / (2 * b * b)
        exact = half + (half * half + r / (b * b)).sqrt()
    solution = solve_riccati(A, B, Q=Q, R=R)
    # The equation's condition is 1 / (1 - radius) = 4e7, so rounding alone makes 1e-8.
    tolerance = np.finfo(float).eps / (1 - solution.spectral_radius)
    np.testing.assert_allclose(solution.P, np.diag([float(exact), 1, 1, 1]), rtol=tolerance)


def test_the_solution_is_the_limit_of_the_recursion(seed):
    A, B, Q, R = map(jnp.asarray, random_riccati(np.random.default_rng(seed), states=4, radius=1.1))
    solution = solve_riccati(A, B, Q=Q, R=R)
    steps = riccati_recursion(jnp.zeros((4, 4)), A, B, Q=Q, R=R, num_steps=400)
    np.testing.assert_allclose(steps.P[0], solution.P, rtol=1e-9)
    np.testing.assert_allclose(steps.K[0], solution.K, rtol=1e-8, atol=1e-10)


def test_one_step_of_the_recursion_is_the_printed_formula(seed):
    A, B, Q, R = map(jnp.asarray, random_riccati(np.random.default_rng(seed), states=4, radius=1.1))
    P = Q + 3 * np.eye(4)
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    step = riccati_step(jnp.asarray(P), A, B, Q=Q, R=R)
    np.testing.assert_allclose(step.K, K, rtol=1e-10)
    np.testing.assert_allclose(step.M, R + B.T @ P @ B, rtol=1e-12)
    np.testing.assert_allclose(step.P, Q + A.T @ P @ A - A.T @ P @ B @ K, rtol=1e-9)


def directions(rng, point):
    """Random ones, symmetric for the cost."""
    A, B, Q, R = (rng.normal(size=matrix.shape) for matrix in point)
    return tuple(map(jnp.asarray, (A, B, Q + Q.T, R + R.T)))


def test_derivatives_of_the_solution_agree_with_finite_differences(seed):
    rng = np.random.default_rng(seed)
    point = tuple(map(jnp.asarray, random_riccati(rng, states=3, radius=0.9)))
    direction = directions(rng, point)

    @jax.jit
    def cost(A, B, Q, R):
        return jnp.trace(solve_riccati(A, B, Q=Q, R=R).P)  # Q and R are made symmetric inside

    _, forward = jax.jvp(cost, point, direction)
    backward = sum(
        jnp.sum(g * d) for g, d in zip(jax.grad(cost, (0, 1, 2, 3))(*point), direction, strict=True)
    )
    expected = directional_difference(cost, point, direction)
    np.testing.assert_allclose([forward, backward], expected, rtol=1e-8)


def test_a_batch_gives_what_its_members_give(seed):
    rng = np.random.default_rng(seed)
    members = [random_riccati(rng, states=4, radius=1.0)[:1] for _ in range(6)]
    A = jnp.asarray([member[0] for member in members])
    B, identity = jnp.asarray(rng.normal(size=(4, 2))), jnp.eye(4)
    batch = jax.jit(jax.vmap(lambda A: solve_riccati(A, B, Q=identity, R=jnp.eye(2))))(A)
    for index in range(6):
        alone = solve_riccati(A[index], B, Q=identity, R=jnp.eye(2))
        np.testing.assert_allclose(batch.P[index], alone.P, rtol=1e-10, atol=1e-10)


def test_one_shape_is_traced_once():
    traces = 0

    @jax.jit
    def solve(A):
        nonlocal traces
        traces += 1
        return solve_riccati(A, jnp.eye(2), Q=jnp.eye(2), R=jnp.eye(2)).P

    for scale in (0.5, 0.9, 1.5):
        solve(scale * jnp.eye(2))
    assert traces == 1


ONE, TWO = np.eye(2)[:, :1], np.eye(2)
HOPELESS = {
    "unreachable unstable mode": (np.diag([0.5, 2.0]), ONE, TWO, NotStabilizableError, "2"),
    "unreachable marginal mode": (np.diag([0.5, 1.0]), ONE, TWO, NotStabilizableError, "marginal"),
    "unweighted marginal mode": (np.eye(2), TWO, np.diag([1, 0]), NotDetectableError, "marginal"),
    "unweighted rotation": ([[0.6, 0.8], [-0.8, 0.6]], ONE, np.zeros((2, 2)), NotDetectableError, "marginal"),
    "unweighted double integrator": (
        [[1.0, 0.1], [0.0, 1.0]],
        TWO,
        np.zeros((2, 2)),
        NotDetectableError,
        "marg",
    ),
    "one grows, one stays": (
        np.diag([2.0, 1.0]),
        TWO,
        np.zeros((2, 2)),
        NotDetectableError,
        r"mode 1 \(marg",
    ),
    "numbers beyond double precision": (1e200 * np.eye(2), TWO, TWO, NotConvergedError, "scaled"),
}


@pytest.mark.parametrize("name", sorted(HOPELESS))
def test_where_there_is_no_stabilising_solution_it_raises_outside_jit_and_is_marked_inside(name):
    A, B, Q, error, reason = HOPELESS[name]
    R = np.eye(B.shape[1])
    with pytest.raises(error, match=reason):
        solve_riccati(A, B, Q=Q, R=R)
    assert not jax.jit(lambda A: solve_riccati(A, B, Q=Q, R=R))(A).converged


def turned(seed, A, B, Q):
    """The same equation in other coordinates, in which rounding hides what is zero."""
    T = scipy.stats.ortho_group.rvs(len(A), random_state=seed)
    Q = T @ Q @ T.T
    return T @ A @ T.T, T @ B, (Q + Q.T) / 2


UNSEEN = {
    "unweighted unstable mode": (np.diag([0.5, 2.0]), TWO, np.diag([1.0, 0.0]), [2.0]),
    "no cost at all": (2 * np.eye(2), TWO, np.zeros((2, 2)), [2.0, 2.0]),
    "one input for two": (np.diag([1.5, 1.2]), [[1.0], [1.0]], np.zeros((2, 2)), [1.5, 1.2]),
    "unweighted Jordan block": ([[1.3, 1.0], [0.0, 1.3]], [[0.0], [1.0]], np.zeros((2, 2)), [1.3, 1.3]),
    "near the circle": (np.diag([1.0001, 0.5]), TWO, np.diag([0.0, 1.0]), [1.0001]),
    "far from the circle": (np.diag([50.0, 0.5]), TWO, np.diag([0.0, 1.0]), [50.0]),
}


@pytest.mark.parametrize("name", sorted(UNSEEN))
def test_an_unstable_mode_that_the_cost_does_not_see_is_mirrored_at_the_circle(name, seed):
    """What costs nothing is stabilised by the least input, which moves lambda to 1/lambda (minimum energy)."""
    A, B, Q, modes = (np.asarray(matrix, dtype=float) for matrix in UNSEEN[name])
    A, B, Q = turned(seed, A, B, Q)
    R = np.eye(B.shape[1])
    solution = solve_riccati(A, B, Q=Q, R=R)
    assert residual(solution.P, A, B, Q, R) < 1e-12
    loops = np.linalg.eigvals(A - B @ np.asarray(solution.K))
    # A double eigenvalue is found to sqrt(eps) only.
    assert all(np.min(np.abs(loops - 1 / mode)) < 1e-7 for mode in modes)
    assert jax.jit(lambda A: solve_riccati(A, B, Q=Q, R=R))(A).converged


def test_derivatives_hold_where_the_cost_does_not_see_a_mode(seed):
    rng = np.random.default_rng(seed)
    A, B, Q = turned(seed, np.diag([1.3, 0.9, 0.5]), rng.normal(size=(3, 2)), np.diag([0.0, 1.0, 1.0]))
    point = tuple(map(jnp.asarray, (A, B, Q, np.eye(2))))
    direction = directions(rng, point)

    @jax.jit
    def cost(A, B, Q, R):
        solution = solve_riccati(A, B, Q=Q, R=R)
        return jnp.trace(solution.P) + jnp.sum(solution.K**2) + jnp.trace(solution.M)

    _, forward = jax.jvp(cost, point, direction)
    np.testing.assert_allclose(forward, directional_difference(cost, point, direction), rtol=1e-7)


STAYING = {"modes": np.eye(2), "rotation": [[0.6, 0.8], [-0.8, 0.6]], "double mode": [[1.0, 0.3], [0.0, 1.0]]}


@pytest.mark.parametrize("kind", sorted(STAYING))
def test_unseen_modes_on_the_circle_are_refused_in_all_coordinates(kind):
    """Rounding makes eps of their cost, with which plain doubling solves the equation in half of the cases."""
    stay = STAYING[kind]
    for seed in range(20):
        B = np.random.default_rng(seed).normal(size=(4, 2))
        A, B, Q = turned(seed, scipy.linalg.block_diag(stay, 0.9, 0.5), B, np.diag([0.0, 0.0, 1.0, 1.0]))
        with pytest.raises(NotDetectableError, match="on the unit circle"):
            solve_riccati(A, B, Q=Q, R=np.eye(2))


def test_an_unreachable_mode_that_rounding_makes_reachable_is_refused_by_name():
    """Its equation has a solution of 1e30 up to rounding, which is not one."""
    for seed in range(20):
        B = np.random.default_rng(seed).normal(size=(4, 1))
        A, B, Q = turned(seed, np.diag([0.5, 0.8, 0.9, 1.5]), B * [[1], [1], [1], [0]], np.eye(4))
        with pytest.raises(NotStabilizableError, match=r"mode 1\.5 of A is"):
            solve_riccati(A, B, Q=Q, R=[[1.0]])


def badly_scaled(rng, *, states, inputs):
    """Stiff time constants of either sign, weak inputs, unseen modes; then units from 1e-6 to 1e6."""
    time_constants = 10 ** rng.uniform(-4, 4, states) * np.where(rng.random(states) < 0.3, -1, 1)
    A = np.diag(np.exp(np.clip(-1 / time_constants, -40, 0.5)))
    if states > 2 and rng.random() < 0.5:
        angle = rng.uniform(0.1, 2)
        turn = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        A[:2, :2] = rng.uniform(0.7, 1.2) * np.asarray(turn)
    B, root = rng.normal(size=(states, inputs)), rng.normal(size=(states, states))
    kind = rng.integers(3)
    if kind == 1:
        B[rng.integers(states)] *= 10 ** -rng.uniform(2, 7)
    elif kind == 2:
        root[:, rng.random(states) < 0.5] = 0
    T = np.linalg.qr(rng.normal(size=(states, states)))[0] if rng.random() < 0.7 else np.eye(states)
    units = 10 ** rng.uniform(-6, 6, states)[:, None]
    A, B, root = units * (T @ A @ T.T) / units.T, units * (T @ B), (root @ T.T) / units.T
    R = np.diag(10 ** rng.uniform(-6, 6, inputs))
    return A, B, root.T @ root * 10 ** rng.uniform(-6, 6), R


def judge(P, A, B, Q, R):
    """The relative residual in the form that keeps its digits, and the spectral radius of the closed loop."""
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    loop = A - B @ K
    error = Q + K.T @ R @ K + loop.T @ P @ loop - P
    size = np.maximum(np.linalg.norm(P), np.finfo(float).tiny)  # P = 0 where nothing costs or grows
    return np.linalg.norm(error) / size, np.max(np.abs(np.linalg.eigvals(loop)))


@pytest.mark.parametrize(
    ("count", "shapes"),
    [
        pytest.param(30, [(4, 2)], id="thirty"),
        pytest.param(300, [(2, 1), (3, 2), (4, 1), (4, 2), (6, 2)], id="300", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::scipy.linalg.LinAlgWarning")
def test_what_scipy_solves_is_not_refused_and_what_is_accepted_is_a_solution(count, shapes):
    rng = np.random.default_rng(1)
    num_solved = 0
    for index in range(count):
        states, inputs = shapes[index % len(shapes)]
        A, B, Q, R = badly_scaled(rng, states=states, inputs=inputs)
        try:
            error, radius = judge(scipy.linalg.solve_discrete_are(A, B, Q, R), A, B, Q, R)
        except np.linalg.LinAlgError:
            error = radius = np.inf
        if error < RESIDUAL_TOLERANCE and radius < 1 - 1e-9:
            P = np.asarray(solve_riccati(A, B, Q=Q, R=R).P)
        else:
            try:
                P = np.asarray(solve_riccati(A, B, Q=Q, R=R).P)
            except LqgapError:
                continue
        num_solved += 1
        error, radius = judge(P, A, B, Q, R)
        assert error < 2 * RESIDUAL_TOLERANCE
        assert radius < 1
    assert num_solved > 0.8 * count


def test_a_batch_has_the_solution_of_each_equation_and_marks_those_without_one():
    rng = np.random.default_rng(3)
    given = [badly_scaled(rng, states=4, inputs=2) for _ in range(5)]
    given.append((np.diag([2.0, 0.5, 0.5, 0.5]), np.zeros((4, 2)), np.eye(4), np.eye(2)))
    A, B, Q, R = (np.stack(matrices) for matrices in zip(*given, strict=True))
    found = solve_each_riccati(A, B, Q=Q, R=R)
    assert np.any(found.converged)
    assert not found.converged[-1]
    for index in np.flatnonzero(found.converged):
        one = solve_riccati(A[index], B[index], Q=Q[index], R=R[index])
        np.testing.assert_allclose(found.P[index], one.P, rtol=1e-6)


CHEAP = {
    "cheap control": ([[1.2, 1.0], [0.0, 0.9]], [[1.0], [-2.0]], np.diag([1.0, 0.0]), [[1e-10]]),
    "cheaper control": ([[1.2, 1.0], [0.0, 0.9]], [[1.0], [-2.0]], np.diag([1.0, 0.0]), [[1e-13]]),
    "slow drift": (np.diag([0.5, 1.0]), np.eye(2), np.diag([1.0, 1e-12]), np.eye(2)),
    "close pair": (np.diag([1.5, 1.501]), [[1.0], [1.0]], np.eye(2), [[1.0]]),
}


@pytest.mark.parametrize("name", sorted(CHEAP))
def test_hard_but_well_posed_equations_are_refined_to_the_last_digits(name):
    A, B, Q, R = (np.asarray(matrix, dtype=float) for matrix in CHEAP[name])
    solution = solve_riccati(A, B, Q=Q, R=R)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    assert np.linalg.norm(solution.P - P) < 1e-7 * np.linalg.norm(P)
    # Refinement stops below REFINED. A rounding dP of P moves the residual by dP - (A-BK)' dP (A-BK), and the
    # equation has about 10 n^2 roundings.
    change = 1 + np.linalg.norm(A - B @ solution.K) ** 2
    rounding = 10 * A.size * np.finfo(float).eps * change
    assert residual(solution.P, A, B, Q, R) < 2 * REFINED + rounding


def test_an_indefinite_weight_that_only_tracing_lets_pass_does_not_count_as_solved():
    def solve(weight):
        return solve_riccati([[0.5]], [[1.0]], Q=[[weight]], R=[[1.0]])

    np.testing.assert_array_equal(jax.vmap(solve)(jnp.asarray([1.0, -0.1])).converged, [True, False])
