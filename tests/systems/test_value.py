import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import general_plant, random_plant, random_record

import lqgap
from lqgap.linalg import quadratic
from lqgap.systems import (
    bellman_backup,
    bias_matrix,
    clipped_beliefs,
    predictor_matrix,
    steady_beliefs,
)


@pytest.fixture(params=[random_plant, general_plant])
def scene(request, seed):
    """A plant, its optimum, a belief, an observation and an input."""
    return _scene(request.param(seed), seed)


def _scene(plant, seed):
    rng = np.random.default_rng(seed + 5)
    xhat, y, u = (jnp.asarray(rng.normal(size=size)) for size in (plant.num_states, 2, 2))
    return plant, lqgap.solve(plant), xhat, y, u


@pytest.fixture
def plain(seed):
    """The same of a plant that weighs outputs and inputs alone."""
    return _scene(random_plant(seed), seed)


def gaussian_nodes(m, S, *, degree):
    """Points and weights that integrate polynomials up to 2 degree - 1 exactly under N(m, S)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(degree)
    index = np.asarray(list(itertools.product(range(degree), repeat=len(m))))
    points = np.asarray(m)[None] + nodes[index] @ np.linalg.cholesky(S).T
    return jnp.asarray(points), np.prod(weights[index] / np.sqrt(2 * np.pi), axis=1)


def test_the_bellman_equation_holds_at_the_optimal_input(scene):
    plant, optimum, xhat, y, _ = scene
    best = bellman_backup(optimum, plant, xhat, y, -optimum.K @ xhat)
    np.testing.assert_allclose(best, optimum.J + lqgap.systems.bias(optimum, plant, xhat, y), rtol=1e-10)


def test_every_other_input_costs_the_square_of_its_distance(scene):
    plant, optimum, xhat, y, u = scene
    excess = bellman_backup(optimum, plant, xhat, y, u) - bellman_backup(
        optimum, plant, xhat, y, -optimum.K @ xhat
    )
    np.testing.assert_allclose(excess, quadratic(u + optimum.K @ xhat, optimum.M), rtol=1e-9)


def test_the_backup_is_the_expected_bias_of_the_next_step(scene):
    """By quadrature over the innovation, from the filter's own update."""
    plant, optimum, xhat, y, u = scene
    predicted = plant.A @ xhat + plant.B @ u
    expected = plant.cost(xhat, y, u)
    if plant.Qx is not None:
        expected += jnp.sum(plant.Qx * optimum.Sigma_filtered)
    for e, weight in zip(*gaussian_nodes(jnp.zeros(2), optimum.S, degree=3), strict=True):
        expected += weight * lqgap.systems.bias(
            optimum, plant, predicted + optimum.L @ e, plant.C @ predicted + e
        )
    np.testing.assert_allclose(bellman_backup(optimum, plant, xhat, y, u), expected, rtol=1e-10)


def test_the_bias_matrix_is_p_minus_cqc_and_positive(scene):
    plant, optimum, *_ = scene
    zeta = bias_matrix(optimum, plant)
    np.testing.assert_allclose(zeta, optimum.P - plant.C.T @ plant.Q @ plant.C, atol=1e-9)
    assert jnp.linalg.eigvalsh(zeta)[0] >= -1e-12


def test_the_target_is_the_bias_of_the_next_belief(scene):
    plant, optimum, xhat, y, u = scene
    predicted = plant.A @ xhat + plant.B @ u
    following = predicted + optimum.L @ (y - plant.C @ predicted)
    target = lqgap.systems.value_target(optimum, plant, xhat, u)
    np.testing.assert_allclose(target(y), lqgap.systems.bias(optimum, plant, following, y), rtol=1e-10)


def test_the_target_does_not_need_l_only_f(plain):
    """With (sigma, L, zeta) replaced by (Abar (A x + B u), F, Phat), as for singular A."""
    plant, o, xhat, _, u = plain
    Phat = o.P - o.P @ plant.B @ jnp.linalg.solve(o.M, plant.B.T @ o.P)
    sigma = predictor_matrix(o, plant) @ (plant.A @ xhat + plant.B @ u)
    target = lqgap.systems.value_target(o, plant, xhat, u)
    np.testing.assert_allclose(target.Phi, o.F.T @ Phat @ o.F + plant.Q, rtol=1e-9)
    np.testing.assert_allclose(target.linear, 2 * o.F.T @ Phat @ sigma, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(target.constant, quadratic(sigma, Phat), rtol=1e-8)


def test_mean_variance_and_cumulant_are_those_of_the_gaussian_law(plain):
    plant, optimum, xhat, _, u = plain
    other = random_plant(77)
    m, S = other.C @ (other.A @ xhat + other.B @ u), lqgap.solve(other).S
    target = lqgap.systems.value_target(optimum, plant, xhat, u)
    points, weights = gaussian_nodes(m, S, degree=4)
    moments = [weights @ np.asarray(jax.vmap(target)(points)) ** k for k in (1, 2)]
    np.testing.assert_allclose(target.mean(m, S), moments[0], rtol=1e-10)
    np.testing.assert_allclose(target.variance(m, S), moments[1] - moments[0] ** 2, rtol=1e-9)
    largest = jnp.max(jnp.linalg.eigvalsh(jnp.linalg.cholesky(S).T @ target.Phi @ jnp.linalg.cholesky(S)))
    scale = 0.05 / largest
    points, weights = gaussian_nodes(m, S, degree=40)
    law = weights @ np.exp(scale * (np.asarray(jax.vmap(target)(points)) - moments[0]))
    np.testing.assert_allclose(target.cumulant(scale, m, S), np.log(law), rtol=1e-8)
    assert target.cumulant(0.51 / largest, m, S) == jnp.inf
    curvature = jax.grad(jax.grad(target.cumulant))(jnp.asarray(0.0), m, S)
    np.testing.assert_allclose(curvature, target.variance(m, S), rtol=1e-9)


def test_golden_targets(golden, golden_plant):
    weights = {name: golden[name] for name in ("Q", "R", "W", "V", "S0")}
    perturbed = lqgap.LQG(*(golden["perturbed_model"][name] for name in "ABC"), **weights)
    optima = {"sys": lqgap.solve(golden_plant), "pert": lqgap.solve(perturbed)}
    np.testing.assert_allclose(optima["pert"].J, golden["perturbed_model"]["J_star"], rtol=1e-9)
    plants = {"sys": golden_plant, "pert": perturbed}
    roles = {
        "Theta=sys, tilde=pert": ("sys", "pert"),
        "Theta=pert, tilde=sys": ("pert", "sys"),
        "short history t<l": ("sys", "pert"),
        "Theta=tilde=sys": ("sys", "sys"),
    }
    y, u, length = (golden["history"][name] for name in ("y", "u", "l"))
    for case in golden["f_values"]:
        theta, acting = roles[case["case"]]
        plant, optimum, t = plants[theta], optima[theta], case["t"]
        target = lqgap.systems.value_target(
            optima[acting], plants[acting], jnp.asarray(case["x_tilde"]), jnp.asarray(case["u"])
        )

        def predicted(beliefs, plant=plant, t=t, case=case):
            return plant.C @ (plant.A @ beliefs[t] + plant.B @ jnp.asarray(case["u"]))

        clipped = predicted(clipped_beliefs(optimum, plant, y, u, length=length))
        full = predicted(steady_beliefs(optimum, plant, y, u))
        np.testing.assert_allclose(target.mean(clipped, optimum.S), case["f_clipped"], rtol=1e-9)
        np.testing.assert_allclose(target.mean(full, optimum.S), case["f_full"], rtol=1e-9)
        np.testing.assert_allclose(
            target.variance(clipped, optimum.S), case["conditional_variance_clipped"], rtol=1e-9
        )


def test_the_error_of_clipping_is_known_exactly(seed):
    """f' - f = 2 a'(L'zeta v + Q m) + a' Phi a with a = C Abar^l A xhat_{t-l|t-l}."""
    plant, acting, length, t = random_plant(seed), random_plant(seed + 30), 3, 9
    optimum, acting_optimum = lqgap.solve(plant), lqgap.solve(acting)
    y, u = random_record(seed, plant)
    full = steady_beliefs(optimum, plant, y, u)
    clipped = clipped_beliefs(optimum, plant, y, u, length=length)
    target = lqgap.systems.value_target(acting_optimum, acting, jnp.ones(3), jnp.asarray(u[t]))
    m = plant.C @ (plant.A @ clipped[t] + plant.B @ u[t])
    a = (
        plant.C
        @ jnp.linalg.matrix_power(predictor_matrix(optimum, plant), length)
        @ plant.A
        @ full[t - length]
    )
    slope = target.Phi @ m + target.linear / 2
    expected = 2 * a @ slope + quadratic(a, target.Phi)
    m_full = plant.C @ (plant.A @ full[t] + plant.B @ u[t])
    np.testing.assert_allclose(
        target.mean(m_full, optimum.S) - target.mean(m, optimum.S), expected, rtol=1e-8
    )
