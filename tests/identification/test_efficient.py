import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.identification import efficient as ef
from lqgap.identification import estimate_markov, innovation_form
from lqgap.identification.design import design
from lqgap.identification.subspace import weighted

NAMES = ("mass_spring_damper", "web_server", "boeing_747")


@functools.cache
def truth(name):
    """The nominal plant in innovation form."""
    how = {"measured": "speed_and_attitude"} if name == "boeing_747" else {}
    plant = getattr(lg.plants, name)(**how).nominal()
    return innovation_form(lg.solve(plant), plant)


@functools.cache
def estimate_of(name, length=8, steps=600, seed=0):
    """An estimate from a record with random inputs."""
    plant, draws = truth(name), np.random.default_rng(seed)
    A, B, C, F = (np.asarray(part) for part in (plant.A, plant.B, plant.C, plant.F))
    root = np.linalg.cholesky(np.asarray(plant.S))
    s, ys = np.zeros(len(A)), []
    us = draws.normal(size=(steps, B.shape[1])) / np.linalg.norm(B)
    for u in us:
        e = root @ draws.normal(size=len(C))
        ys.append(C @ s + e)
        s = A @ s + B @ u + F @ e
    return estimate_markov(np.asarray(ys), us, length=length, ridge=1e-3)


@functools.partial(jax.jit, static_argnames="order")
def fitted(estimate, order):
    metric = ef.MarkovMetric(estimate)
    rough, values, _ = weighted(estimate, metric, order)
    return metric, ef.stable_predictor(rough), ef.polish(rough, estimate, metric), values


jacobian = jax.jit(lambda metric, plant: metric.jacobian(plant))


@pytest.mark.parametrize("name", NAMES)
def test_the_jacobian_has_the_rank_that_coordinates_leave(name):
    plant = truth(name)
    n, m, p = plant.order, plant.B.shape[1], len(plant.C)
    metric = ef.MarkovMetric(estimate_of(name))
    values = np.linalg.svd(np.asarray(jacobian(metric, plant)), compute_uv=False)
    rank = n * (m + 2 * p)
    assert values[rank - 1] > 1e-9 * values[0]
    assert np.all(values[rank:] < 1e-13 * values[0])


@pytest.mark.parametrize(("name", "length"), [("mass_spring_damper", 60), ("web_server", 24)])
def test_under_one_optimal_controller_data_see_all_but_the_gains_that_it_cannot_tell(name, length):
    """Of n (m + 2p) directions n m leave no trace: (D G A, D, 0, D G F) moves no prediction while u = -G chi."""
    plant, draws = truth(name), np.random.default_rng(0)
    how = getattr(lg.plants, name)().nominal()
    A, B, C, F, S = (np.asarray(part) for part in (plant.A, plant.B, plant.C, plant.F, plant.S))
    G = np.asarray(design(plant, Q=how.Q, R=how.R).G)
    n, m, p = len(A), B.shape[1], len(C)
    # y_{t-1}.. and u_{t-1}.. as sums over past innovations: the response to each, by the loop.
    chi, ys, us = F, [np.eye(p)], [-G @ F]
    for _ in range(200):
        ys.append(C @ (chi - B @ G @ chi))
        chi = A @ (chi - B @ G @ chi)
        us.append(-G @ chi)
    late = lambda of, k: np.concatenate([np.zeros((k, *of[0].shape)), of])[: len(ys)]  # noqa: E731
    phi = np.concatenate([late(np.asarray(of), k) for of in (ys, us) for k in range(length)], axis=1)
    gram = np.einsum("tap,pq,tbq->ab", phi, S, phi)
    theta = ef.flatten(plant)
    markov = lambda theta: ef.unflatten(theta, plant).markov(length=length).matrix().ravel()  # noqa: E731
    D = np.asarray(jax.jit(jax.jacfwd(markov))(theta))
    known = np.linalg.eigvalsh(D.T @ np.kron(np.linalg.inv(S), gram) @ D)[::-1]
    assert known[2 * n * p - 1] > 1e-6 * known[0]
    assert np.all(np.abs(known[2 * n * p :]) < 1e-12 * known[0])
    X = draws.normal(size=(n, m))
    unseen = np.concatenate([part.ravel() for part in (X @ G @ A, X, np.zeros((p, n)), X @ G @ F)])
    assert np.linalg.norm(D @ unseen) > 1e-3  # random inputs would tell
    shown = (D @ unseen).reshape(p, -1)
    assert np.trace(shown @ gram @ shown.T) < 1e-12 * known[0]


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_jacobian_is_the_central_difference_of_coordinates(name):
    plant, metric = truth(name), ef.MarkovMetric(estimate_of(name))
    theta = ef.flatten(plant)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=theta.shape))
    step = 1e-5
    ahead, behind = (
        metric.of_plant(ef.unflatten(theta + sign * step * direction, plant)) for sign in (1, -1)
    )
    difference = np.asarray(ahead - behind) / (2 * step)
    found = np.asarray(jacobian(metric, plant) @ direction)
    np.testing.assert_allclose(found, difference, atol=1e-6 * np.max(np.abs(difference)))


@pytest.mark.parametrize("name", NAMES)
def test_gauss_newton_never_increases_the_misfit_and_comes_close_to_the_least(name):
    estimate = estimate_of(name)
    plant = truth(name)
    metric, rough, polished, _ = fitted(estimate, plant.order)
    wanted = metric.coordinates(estimate.parameters.matrix())
    first, last, of_truth = (
        float(jnp.sum((wanted - metric.of_plant(each)) ** 2)) for each in (rough, polished, plant)
    )
    assert last <= first
    assert last <= of_truth  # the likeliest is likelier than the truth
    assert np.max(np.abs(np.linalg.eigvals(np.asarray(polished.Abar)))) < 1


def test_an_unstable_predictor_is_shrunk_and_others_are_left_alone():
    plant = truth("mass_spring_damper")
    same = ef.stable_predictor(plant)
    np.testing.assert_allclose(same.A, plant.A, rtol=1e-12)
    wild = ef.unflatten(ef.flatten(plant), plant)
    wild = type(plant)(3 * plant.A, plant.B, plant.C, plant.F, plant.S)
    radius = np.max(np.abs(np.linalg.eigvals(np.asarray(ef.stable_predictor(wild).Abar))))
    np.testing.assert_allclose(radius, 0.95, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES[:2])
def test_draws_have_the_covariance_that_the_information_says(name):
    estimate, plant = estimate_of(name), truth(name)
    metric, _, polished, _ = fitted(estimate, plant.order)
    rank = plant.order * (plant.B.shape[1] + 2 * len(plant.C))
    known = ef.information(metric, polished, jnp.asarray(rank))
    D = np.asarray(jacobian(metric, polished))
    assert int(jnp.sum(known.is_seen)) == rank
    # A displacement of theta moves the coordinates by D times it, whose covariance is a projection.
    moved = D @ np.asarray(jax.vmap(known.draw)(jnp.eye(D.shape[1]))).T
    np.testing.assert_allclose(np.trace(moved @ moved.T), rank, rtol=1e-6)
    g = D.T @ np.random.default_rng(0).normal(size=len(D))
    np.testing.assert_allclose(
        D.T @ D @ np.asarray(known.invert(jnp.asarray(g))), g, atol=1e-6 * np.abs(g).max()
    )


def test_draws_stay_in_scale_of_the_data():
    estimate, plant = estimate_of("mass_spring_damper"), truth("mass_spring_damper")
    metric, _, polished, _ = fitted(estimate, 2)
    known = ef.information(metric, polished, jnp.asarray(6))
    normals = jnp.asarray(np.random.default_rng(0).normal(size=(20, 10)))
    drawn = ef.draw_plants(metric, polished, known, normals=normals)
    seen = np.where(np.asarray(known.is_seen), np.asarray(normals), 0)
    apart = np.asarray(jax.vmap(lambda each: metric.misfit(each, polished))(drawn))
    assert np.all(apart <= 2 * np.sum(seen**2, axis=1) + 1)
    assert np.median(apart / np.sum(seen**2, axis=1)) > 0.3
    assert plant.order == 2
