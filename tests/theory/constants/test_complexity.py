import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY

import lqgap
from lqgap.simulators import Finite, check_assumptions
from lqgap.theory import complexity, num_features, sample_features
from lqgap.theory.constants.complexity import (
    class_features,
    feature_radius,
    low_rank_dimension,
    numerical_rank,
)
from lqgap.theory.constants.corrected import corrected_constants
from lqgap.theory.constants.features import prediction_features
from lqgap.theory.constants.norms import contracting, uniform_norms
from lqgap.theory.constants.samples import draw_samples


def unit_noise_class(count, **sizes):
    plants = [random_plant(seed, **sizes) for seed in range(count)]
    return Finite([lqgap.LQG(plant.A, plant.B, plant.C) for plant in plants])


@pytest.mark.slow
def test_all_553_features_of_a_class_of_three_states_are_independent():
    features = class_features(unit_noise_class(700), length=4)
    assert numerical_rank(features) == features.shape[1] == 553
    assert (
        numerical_rank(features[:-1] - features[1:]) == 552
    )  # the constant feature falls out of differences


@pytest.mark.slow
def test_one_state_makes_them_depend_on_each_other():
    """With n = 1 and unit noise, N = c g' with g made of abar^k b_r (k = 0..4) and a s abar^k c_j (k = 0..3).

    Monomials: c c b b abar^k 3 * 3 * 9, c c c b abar^k 4 * 2 * 8, c c c c abar^k 5 * 7; linear c b abar^k 2 * 2 * 5,
    c c abar^k 3 * 4; S 3 and the constant 1. With general noise F is not along c: 3 * 80 + 36 + 3 + 1.
    """
    unit = 3 * 3 * 9 + 4 * 2 * 8 + 5 * 7 + 2 * 2 * 5 + 3 * 4 + 3 + 1
    assert numerical_rank(class_features(unit_noise_class(700, states=1), length=4)) == unit == 216
    general = Finite([random_plant(seed, states=1) for seed in range(700)])
    assert numerical_rank(class_features(general, length=4)) == 3 * 80 + 36 + 3 + 1 == 280


def test_the_rank_does_not_depend_on_the_size_of_columns():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 8)) * 10.0 ** np.arange(0, -24, -3)
    assert numerical_rank(rows) == 3
    assert numerical_rank(np.concatenate([rows, np.zeros((30, 2))], axis=1)) == 3


def low_rank_features(count, *, length, num_parameters):
    """C = I, a known gain, A and B linear in the parameters: features of random members."""
    rng = np.random.default_rng(0)
    bases_A, bases_B = rng.normal(size=(num_parameters, 3, 3)), rng.normal(size=(num_parameters, 3, 1))
    L, S = 0.4 * np.eye(3) + 0.05 * rng.normal(size=(3, 3)), 2 * np.eye(3)
    rows = []
    for t in rng.uniform(-1, 1, size=(count, num_parameters)):
        A, B = np.tensordot(t, bases_A, 1) / 3, np.tensordot(t, bases_B, 1)
        powers = [np.linalg.matrix_power(A - A @ L, k) for k in range(length + 1)]
        N = np.concatenate([*(P @ B for P in powers[1:]), *(P @ A @ L for P in powers[:length]), B], axis=1)
        rows.append(prediction_features(jnp.asarray(N), jnp.asarray(S)))
    return np.asarray(rows)


def test_two_parameters_and_known_gain_leave_at_most_45_dimensions():
    assert low_rank_dimension(num_parameters=2, length=3) == 45
    rank = numerical_rank(low_rank_features(150, length=3, num_parameters=2))
    assert 20 < rank <= 45
    printed = 2**4 * 3 ** (2 * 2)
    assert printed == 1296


@pytest.mark.slow
def test_the_sheet_of_a_spring_family():
    sheet = complexity(FAMILY.grid(3), horizon=1000, length=4, delta=0.01, num_runs=8, num_steps=8)
    finite, general, low_rank, with_data = (
        sheet[name] for name in ("finite", "general", "low-rank", "with data")
    )
    assert finite["features"] == num_features(num_inputs=1, num_outputs=1, length=4)
    assert finite["dim_E"] == 8
    assert 1 <= finite["eluder_found"] <= finite["dim_E_pairs"] == 36
    assert 1 <= finite["rank"] <= 9
    assert finite["cover_found"] == 9  # members of a grid that coarse are told apart
    for column in (finite, general, low_rank, with_data):
        expected = column["dim_E"] * column["log_cover"] * column["D"] ** 2
        np.testing.assert_allclose(column["delta_E"], expected)
    assert low_rank["log_cover"] < general["log_cover"]
    assert finite["delta_E"] < with_data["delta_E"] <= low_rank["delta_E"] < general["delta_E"]


@pytest.mark.slow
def test_features_of_samples_stay_within_their_radius():
    members = FAMILY.grid(2)
    norms = uniform_norms(contracting(check_assumptions(members)))
    state = corrected_constants(norms, horizon=100.0, delta=0.01, C_w=1.0)
    samples = draw_samples(members, length=4, num_runs=8, num_steps=8, key=jax.random.key(0))
    sizes = jnp.linalg.norm(jax.vmap(sample_features)(samples.target, samples.window), axis=1)
    assert jnp.max(sizes) <= feature_radius(norms, state, length=4)


def test_the_radius_holds_for_a_sample_on_the_edge_of_its_bounds(seed):
    plant = lqgap.LQG([[0.5]], [[1.0]], [[1.0]])
    norms = uniform_norms(check_assumptions(Finite([plant])))
    sign = np.random.default_rng(seed).choice([-1.0, 1.0])
    target = lqgap.systems.value_target(lqgap.solve(plant), plant, [4.0 * sign], [2.0 * sign])
    window = jnp.asarray([2.0, 2.0, 3.0, 3.0, 2.0])
    state = {"Ubar": 2.0, "Ybar": 3.0, "Xbar_1": 4.0}
    assert jnp.linalg.norm(sample_features(target, window)) <= feature_radius(norms, state, length=2)
