import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden import GOLDEN
from random_systems import directional_difference, random_plant
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

import lqgap
from lqgap.errors import (
    InvalidArgumentError,
    InvalidSystemError,
    NotConvergedError,
    NotDetectableError,
    NotStabilizableError,
)
from lqgap.linalg import spectral_radius
from lqgap.systems import closed_loop_matrix, filter_matrix, predictor_matrix
from lqgap.systems.optimum import belief_covariance


def test_golden_optimum(golden, golden_plant):
    optimum = lqgap.solve(golden_plant)
    for ours, theirs in {"J": "J_star", "Sigma_filtered": "Sigma_filtered"}.items():
        np.testing.assert_allclose(getattr(optimum, ours), golden[theirs], rtol=1e-9)
    for name in ("P", "K", "Sigma", "L", "F", "S"):
        np.testing.assert_allclose(getattr(optimum, name), golden[name], rtol=1e-9, atol=1e-12)
    radii = golden["rho_A_minus_BK"], golden["rho_Abar"]
    np.testing.assert_allclose(optimum.spectral_radius, max(radii), rtol=1e-9)
    closed_loop = closed_loop_matrix(optimum, golden_plant)
    np.testing.assert_allclose(jnp.linalg.norm(closed_loop, 2), golden["norm_A_minus_BK"], rtol=1e-9)
    np.testing.assert_allclose(
        spectral_radius(predictor_matrix(optimum, golden_plant)), golden["rho_Abar"], rtol=1e-9
    )


@pytest.fixture(params=[0.5, 0.95, 1.2])
def solved(request, seed):
    plant = random_plant(seed, radius=request.param)
    return plant, lqgap.solve(plant)


def close(left, right, *, rtol=1e-9):
    scale = np.linalg.norm(np.asarray(right))
    np.testing.assert_allclose(left, right, rtol=0, atol=rtol * max(scale, 1e-12))


def test_both_riccati_equations_hold_in_their_printed_form(solved):
    (plant, o) = solved
    A, B, C, Q, R, W, V = plant.A, plant.B, plant.C, plant.Q, plant.R, plant.W, plant.V
    close(
        o.P, A.T @ o.P @ A + C.T @ Q @ C - A.T @ o.P @ B @ jnp.linalg.inv(R + B.T @ o.P @ B) @ B.T @ o.P @ A
    )
    inverse = jnp.linalg.inv(C @ o.Sigma @ C.T + V)
    close(o.Sigma, A @ o.Sigma @ A.T - A @ o.Sigma @ C.T @ inverse @ C @ o.Sigma @ A.T + W)


def test_the_closed_loop_lyapunov_forms_hold(solved):
    plant, o = solved
    closed_loop, Abar, calA = (f(o, plant) for f in (closed_loop_matrix, predictor_matrix, filter_matrix))
    keep = jnp.eye(3) - o.L @ plant.C
    close(o.P - closed_loop.T @ o.P @ closed_loop, plant.C.T @ plant.Q @ plant.C + o.K.T @ plant.R @ o.K)
    close(o.Sigma - Abar @ o.Sigma @ Abar.T, plant.W + o.F @ plant.V @ o.F.T)
    close(
        o.Sigma_filtered - calA @ o.Sigma_filtered @ calA.T,
        keep @ plant.W @ keep.T + o.L @ plant.V @ o.L.T,
    )


def test_the_gain_identities_hold(solved):
    plant, o = solved
    A, B, C, V = plant.A, plant.B, plant.C, plant.V
    keep, Abar, calA = jnp.eye(3) - o.L @ C, predictor_matrix(o, plant), filter_matrix(o, plant)
    close(o.L @ o.S @ o.L.T, o.L @ C @ o.Sigma)
    close(o.L @ o.S @ o.L.T, o.Sigma - o.Sigma_filtered)
    close(o.L, o.Sigma_filtered @ C.T @ jnp.linalg.inv(V))
    close(o.K @ o.L, jnp.linalg.solve(o.M, B.T @ o.P @ o.F))
    Phat = jnp.linalg.inv(jnp.linalg.inv(o.P) + B @ jnp.linalg.inv(plant.R) @ B.T)
    close(o.P - C.T @ plant.Q @ C, A.T @ Phat @ A)
    for k in range(1, 4):
        power = jnp.linalg.matrix_power(calA, k)
        close(A @ power, jnp.linalg.matrix_power(Abar, k) @ A)
        close(power, keep @ jnp.linalg.matrix_power(Abar, k - 1) @ A)


def test_the_gain_of_the_filter_is_bounded_by_the_root_of_its_covariance(seed):
    plant = random_plant(seed)
    plant = lqgap.LQG(plant.A, plant.B, plant.C)
    optimum = lqgap.solve(plant)
    bound = 0.5 * jnp.sqrt(jnp.linalg.norm(optimum.Sigma, 2))
    assert jnp.linalg.norm(optimum.L, 2) <= bound * (1 + 1e-12)


def test_filter_and_predictor_share_their_radius_but_not_their_norm():
    plant = random_plant(0)
    optimum = lqgap.solve(plant)
    calA, Abar = filter_matrix(optimum, plant), predictor_matrix(optimum, plant)
    np.testing.assert_allclose(spectral_radius(calA), spectral_radius(Abar), rtol=1e-9)
    assert abs(jnp.linalg.norm(calA, 2) / jnp.linalg.norm(Abar, 2) - 1) > 0.05


def test_the_other_form_of_the_average_cost_agrees(solved):
    plant, o = solved
    C = plant.C
    other = (
        jnp.trace(o.P @ o.L @ C @ o.Sigma)
        + jnp.trace(C.T @ plant.Q @ C @ (jnp.eye(3) - o.L @ C) @ o.Sigma)
        + jnp.trace(plant.Q @ plant.V)
    )
    np.testing.assert_allclose(o.J, other, rtol=1e-10)


def test_the_average_cost_is_that_of_the_closed_loop(solved):
    """Independent of the formula: the stationary covariance of (x, xhat_{t|t-1}) by a linear solve."""
    plant, o = solved
    A, B, C = plant.A, plant.B, plant.C
    filtered = jnp.eye(3) - o.L @ C
    loop = jnp.block(
        [[A - B @ o.K @ o.L @ C, -B @ o.K @ filtered], [o.F @ C - B @ o.K @ o.L @ C, A - o.F @ C - B @ o.K @ filtered]]
    )  # fmt: skip
    from_z = jnp.concatenate([-B @ o.K @ o.L, (A - B @ o.K) @ o.L])
    noise = jnp.zeros((6, 6)).at[:3, :3].set(plant.W) + from_z @ plant.V @ from_z.T
    covariance = jnp.linalg.solve(jnp.eye(36) - jnp.kron(loop, loop), noise.ravel()).reshape(6, 6)
    output = jnp.concatenate([C, jnp.zeros((2, 3))], axis=1)
    control = jnp.concatenate([-o.K @ o.L @ C, -o.K @ filtered], axis=1)
    cost = jnp.trace(output.T @ plant.Q @ output @ covariance) + jnp.trace(plant.Q @ plant.V)
    cost += jnp.trace(control.T @ plant.R @ control @ covariance)
    cost += jnp.trace(o.L.T @ o.K.T @ plant.R @ o.K @ o.L @ plant.V)
    np.testing.assert_allclose(o.J, cost, rtol=1e-8)


@pytest.mark.parametrize(
    "golden",
    [
        "mimo3",
        *(pytest.param(name, marks=pytest.mark.slow) for name in sorted({*GOLDEN["systems"]} - {"mimo3"})),
    ],
    indirect=True,
)
def test_derivatives_of_the_average_cost_agree_with_finite_differences(golden_plant):
    plant = golden_plant

    @jax.jit
    def average_cost(A, B, C):
        return lqgap.solve(lqgap.LQG(A, B, C, Q=plant.Q, R=plant.R, W=plant.W, V=plant.V)).J

    point = plant.A, plant.B, plant.C
    gradient = jax.grad(average_cost, (0, 1, 2))(*point)
    for which, matrix in enumerate(point):
        for entry in np.ndindex(matrix.shape):
            direction = [jnp.zeros_like(other) for other in point]
            direction[which] = direction[which].at[entry].set(1.0)
            expected = directional_difference(average_cost, point, direction)
            scale = jnp.max(jnp.abs(gradient[which]))
            np.testing.assert_allclose(gradient[which][entry], expected, rtol=0, atol=1e-7 * scale)


def test_a_batch_is_solved_by_vmap_and_checked_afterwards():
    plants = [random_plant(seed) for seed in range(4)]
    batch = lqgap.stack(plants)
    optima = jax.vmap(lqgap.solve)(batch)
    lqgap.systems.require_converged(optima, batch)
    np.testing.assert_allclose(optima.J, [lqgap.solve(plant).J for plant in plants], rtol=1e-10)
    with pytest.raises(
        InvalidSystemError, match=r"plant.A has shape \(4, 3, 3\), expected \(state, state\).* jax\.vmap"
    ):
        lqgap.solve(batch)


def test_a_hopeless_member_of_a_batch_is_marked_and_named():
    good = lqgap.LQG(np.diag([0.5, 0.9]), [[1.0], [0.0]], [[1.0, 1.0]])
    bad = lqgap.LQG(np.diag([0.5, 1.1]), [[1.0], [0.0]], [[1.0, 1.0]])
    batch = lqgap.stack([good, bad])
    optima = jax.vmap(lqgap.solve)(batch)
    np.testing.assert_array_equal(optima.converged, [True, False])
    with pytest.raises(NotStabilizableError, match=r"plant 1 of the batch.* 1\.1 of A"):
        lqgap.systems.require_converged(optima, batch)


UNSTABLE, MARGINAL = np.diag([0.5, 1.1]), np.diag([0.5, 1.0])
FIRST, BOTH, COLUMN = [[1.0, 0.0]], [[1.0, 1.0]], [[1.0], [1.0]]
HOPELESS = {
    "input misses an unstable mode": (dict(A=UNSTABLE, B=[[1.0], [0.0]], C=BOTH), NotStabilizableError, r"\(A, B\) is not stabilisable.* 1\.1 of A"),
    "input misses a marginal mode": (dict(A=MARGINAL, B=[[1.0], [0.0]], C=BOTH), NotStabilizableError, r"1 \(marginal\)"),
    "output misses an unstable mode": (dict(A=UNSTABLE, B=COLUMN, C=FIRST), NotDetectableError, r"\(A, C\) is not detectable.* 1\.1 of A"),
    "output misses a marginal mode": (dict(A=MARGINAL, B=COLUMN, C=FIRST), NotDetectableError, r"1 \(marginal\)"),
    "cost misses a marginal mode": (dict(A=MARGINAL, B=COLUMN, C=np.eye(2), Q=np.diag([1.0, 0.0])), NotDetectableError, r"cost y'Qy.*a weight in Q"),
    "noise misses a marginal mode": (dict(A=MARGINAL, B=COLUMN, C=BOTH, W=np.diag([1.0, 0.0])), NotStabilizableError, r"not excited by the process noise"),
    "entries overflow": (dict(A=1e250 * UNSTABLE, B=COLUMN, C=BOTH), NotConvergedError, "badly scaled units"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HOPELESS))
def test_a_plant_without_a_stationary_optimum_raises_with_the_cause(name):
    matrices, error, message = HOPELESS[name]
    plant = lqgap.LQG(**matrices)
    with pytest.raises(error, match=message):
        lqgap.solve(plant)
    assert not jax.jit(lqgap.solve)(plant).converged


SERVO = np.array([[1.0, 0.1], [0.0, 0.9]])  # angle, speed


def test_a_constant_load_is_named_alone_with_what_to_do():
    A = np.block([[SERVO, np.array([[0.0], [0.2]])], [np.zeros((1, 2)), np.ones((1, 1))]])
    plant = lqgap.LQG(A, [[0.0], [1.0], [0.0]], [[1.0, 0.0, 0.0]])
    with pytest.raises(
        NotStabilizableError, match=r": mode 1 \(marginal\) of A is.*constant load.*0\.9999 inst"
    ):
        lqgap.solve(plant)
    A[2, 2] = 0.9999
    lqgap.solve(lqgap.LQG(A, plant.B, plant.C))  # the one remedy
    change = np.block([[SERVO, np.array([[0.0], [1.0]])], [np.zeros((1, 2)), np.ones((1, 1))]])
    lqgap.solve(lqgap.LQG(change, [[0.0], [0.0], [1.0]], plant.C))  # the other: voltage and load in one state


def test_an_integrator_that_nothing_measures_is_named_alone_with_what_to_do():
    A = np.block([[SERVO, np.zeros((2, 1))], [np.array([[0.1, 0.0, 1.0]])]])
    plant = lqgap.LQG(A, [[0.0], [1.0], [0.0]], [[1.0, 0.0, 0.0]])
    with pytest.raises(NotDetectableError, match=r": mode 1 \(marginal\) of A is.*integrator.*a row of C"):
        lqgap.solve(plant)
    lqgap.solve(lqgap.LQG(A, plant.B, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))  # the remedy


@pytest.mark.parametrize("missed", ["noise", "cost"])
def test_unstable_modes_that_noise_or_cost_miss_have_an_optimum(missed):
    """The average cost is that of the covariance of state and estimate in the closed loop."""
    A = np.diag([1.2, 0.9])
    if missed == "noise":
        plant = lqgap.LQG(A, COLUMN, BOTH, W=np.diag([0.0, 1.0]))
    else:
        plant = lqgap.LQG(A, COLUMN, np.array([[0.0, 1.0], [1.0, 1.0]]), Q=np.diag([1.0, 0.0]))
    A, B, C, Q, R, W, V, _ = map(np.asarray, plant.matrices().values())
    optimum = lqgap.solve(plant)
    assert optimum.spectral_radius < 1 - 1e-3
    P, Sigma = solve_discrete_are(A, B, C.T @ Q @ C, R), solve_discrete_are(A.T, C.T, W, V)
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    L = np.linalg.solve(C @ Sigma @ C.T + V, C @ Sigma).T
    # The state (x, xhat_{t|t-1}) and u = -K (xhat + L (y - C xhat)).
    feedback = np.hstack([-K @ L @ C, -K @ (np.eye(2) - L @ C)])
    update = np.hstack([L @ C, np.eye(2) - L @ C])
    loop = np.vstack([np.hstack([A, np.zeros((2, 2))]) + B @ feedback, A @ update + B @ feedback])
    noise = np.vstack([-B @ K @ L, A @ L - B @ K @ L])
    driving = noise @ V @ noise.T
    driving[:2, :2] += W
    X = solve_discrete_lyapunov(loop, driving)
    seen = np.hstack([C, np.zeros_like(C)])
    J = np.trace(Q @ (seen @ X @ seen.T + V)) + np.trace(
        R @ (feedback @ X @ feedback.T + K @ L @ V @ L.T @ K.T)
    )
    np.testing.assert_allclose(optimum.J, J, rtol=1e-9)
    if missed == "noise":
        np.testing.assert_allclose(optimum.J, 27.0832, atol=5e-5)


def test_stable_modes_out_of_reach_and_out_of_sight_do_no_harm():
    optimum = lqgap.solve(lqgap.LQG(np.diag([0.5, 0.9]), [[1.0], [0.0]], FIRST))
    alone = lqgap.solve(lqgap.LQG([[0.5]], [[1.0]], [[1.0]]))
    np.testing.assert_allclose(optimum.J, alone.J, rtol=1e-12)


def test_a_closed_over_plant_can_be_solved_inside_jit():
    plant = random_plant(0)
    inside = jax.jit(lambda scale: scale * lqgap.solve(plant).J)(1.0)
    np.testing.assert_allclose(inside, lqgap.solve(plant).J, rtol=1e-12)


@pytest.mark.usefixtures("as_users_run_it")
def test_something_else_than_a_plant_raises():
    with pytest.raises(InvalidSystemError, match=r"plant is a dict, expected an lqgap\.systems\.LQG"):
        lqgap.solve({"A": 1})


def test_values_unknown_under_tracing_are_checked_afterwards():
    batch = jax.vmap(lambda q: lqgap.LQG([[0.5]], [[1.0]], [[1.0]], Q=[[q]]))(jnp.asarray([1.0, -0.1]))
    optima = jax.vmap(lqgap.solve)(batch)
    np.testing.assert_array_equal(optima.converged, [True, False])
    with pytest.raises(InvalidSystemError, match=r"Q is not positive semidefinite.*plant 1 of the batch"):
        lqgap.systems.require_converged(optima, batch)
    lost = jax.vmap(lambda a: lqgap.LQG([[a]], [[1.0]], [[1.0]]))(jnp.asarray([0.5, jnp.nan]))
    with pytest.raises(InvalidSystemError, match=r"A has entries that are NaN.*plant 1 of the batch"):
        lqgap.systems.require_converged(jax.vmap(lqgap.solve)(lost), lost)
    with pytest.raises(InvalidArgumentError, match="under jit"):
        jax.jit(lambda plant: lqgap.systems.require_converged(lqgap.solve(plant), plant))(random_plant(0))


def test_units_do_not_decide_whether_a_plant_is_solved():
    plant = lqgap.LQG(
        [[1.1, 0.3, 0.2], [0.2, 0.7, 0.1], [0.3, 0.1, 0.5]], [[1.0], [0.5], [0.2]], [[1.0, 0.2, 0.3]]
    )
    other = lqgap.systems.change_coordinates(plant, np.diag([1.0, 1e5, 1e-5]))
    np.testing.assert_allclose(lqgap.solve(other).J, lqgap.solve(plant).J, rtol=1e-6)
    drift = lqgap.LQG(np.diag([0.5, 1.0]), np.eye(2), np.eye(2), W=np.diag([1.0, 1e-12]))
    assert lqgap.solve(drift).spectral_radius < 1
    precise = lqgap.LQG([[1.2, 0.0], [1.0, 0.9]], [[1.0], [0.0]], [[1.0, -2.0]], V=[[1e-10]])
    assert lqgap.solve(precise).residual < 1e-12


def test_the_covariance_of_the_belief_solves_its_equation(seed):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    X, Acl = belief_covariance(optimum, plant), closed_loop_matrix(optimum, plant)
    np.testing.assert_allclose(X, Acl @ X @ Acl.T + optimum.L @ optimum.S @ optimum.L.T, rtol=1e-10)


@pytest.mark.usefixtures("as_users_run_it")
def test_the_optimum_of_another_plant_is_refused():
    with pytest.raises(
        InvalidArgumentError, match=r"plant\.A has shape \(3, 3\).* as the other arguments have it"
    ):
        lqgap.systems.bias(lqgap.solve(random_plant(0, states=4)), random_plant(0), np.ones(3), np.ones(2))


@pytest.mark.timeout(120)
def test_a_large_batch_does_not_deadlock():
    """Two independent loops in one program wedge XLA's thread pool on two cores; ours run in turn."""
    plant = random_plant(0, states=4)
    rng = np.random.default_rng(0)
    A = np.asarray(plant.A) + 0.01 * rng.normal(size=(5000, 4, 4))

    def average_cost(A):
        return lqgap.solve(lqgap.LQG(A, plant.B, plant.C)).J

    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(average_cost)))(A)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))
