import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.identification.markov import exact_markov
from lqgap.identification.realization import best_rotation, innovation_form, rotate
from lqgap.identification.subspace import realize
from lqgap.systems import change_coordinates, delay_input


def plant_and_form(seed, **sizes):
    plant = random_plant(seed, **sizes)
    optimum = lqgap.solve(plant)
    return plant, optimum, innovation_form(optimum, plant)


def aligned(estimate, reference):
    return rotate(estimate, best_rotation(estimate, reference))


def random_rotation(seed, size):
    return jnp.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0])


def test_the_innovation_form_has_the_markov_parameters_of_the_plant(seed):
    plant, optimum, form = plant_and_form(seed)
    exact = exact_markov(optimum, plant, length=6)
    np.testing.assert_allclose(form.markov(length=6).matrix(), exact.matrix(), atol=1e-12)


def test_its_controller_is_the_optimum(seed):
    plant, optimum, form = plant_and_form(seed)
    cost = lqgap.exact_average_cost(form.controller(Q=plant.Q, R=plant.R), plant)
    np.testing.assert_allclose(cost, optimum.J, rtol=1e-9)


def test_a_delay_whose_A_is_singular_has_a_controller():
    plant = delay_input(random_plant(0, inputs=1), 2)
    optimum = lqgap.solve(plant)
    form = innovation_form(optimum, plant)
    cost = lqgap.exact_average_cost(form.controller(Q=plant.Q, R=plant.R), plant)
    np.testing.assert_allclose(cost, optimum.J, rtol=1e-9)


def test_alignment_undoes_a_rotation(seed):
    _, _, form = plant_and_form(seed)
    T = random_rotation(seed, 3)
    back = aligned(rotate(form, T), form)
    for name in "ABCF":
        np.testing.assert_allclose(getattr(back, name), getattr(form, name), atol=1e-9)


def test_no_other_rotation_is_nearer(seed):
    """The Procrustes solution against random rotations near it and far from it."""
    estimate, reference = plant_and_form(seed)[2], plant_and_form(seed + 10)[2]

    def distance(T):
        def factors(form):
            powers = [np.linalg.matrix_power(form.Abar, k) for k in range(3)]
            gains = np.concatenate([form.F, form.B], axis=1)
            return np.concatenate([form.C @ X for X in powers]), np.concatenate(
                [X @ gains for X in powers], axis=1
            )

        moved, fixed = factors(rotate(estimate, T)), factors(reference)
        return sum(np.linalg.norm(one - other) ** 2 for one, other in zip(moved, fixed, strict=True))

    best = best_rotation(estimate, reference)
    np.testing.assert_allclose(best.T @ best, np.eye(3), atol=1e-12)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 10.0):
        other = jnp.asarray(np.linalg.qr(np.asarray(best) + size * rng.normal(size=(3, 3)))[0])
        other = other * jnp.sign(jnp.diagonal(other.T @ best))[None, :]
        assert distance(other) > distance(best)


def test_balanced_realisations_of_one_plant_agree_whatever_its_coordinates(seed):
    plant, _, form = plant_and_form(seed)
    other = change_coordinates(plant, np.random.default_rng(seed).normal(size=(3, 3)))
    one, two = (realize(exact_markov(lqgap.solve(p), p, length=8), order=3) for p in (plant, other))
    moved = aligned(two, one)
    for name in "ABCF":
        np.testing.assert_allclose(getattr(moved, name), getattr(one, name), atol=1e-6)
    # Orthogonal alignment alone does not bring the plant itself there.
    assert np.linalg.norm(aligned(form, one).A - one.A) > 1e-2


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    form = plant_and_form(0)[2]
    with pytest.raises(lqgap.InvalidSystemError, match="R is not positive definite"):
        form.controller(Q=np.eye(2), R=-np.eye(2))
    with pytest.raises(lqgap.InvalidSystemError, match="Q has shape"):
        form.controller(Q=np.eye(3), R=np.eye(2))
