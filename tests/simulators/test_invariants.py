import jax.numpy as jnp
import numpy as np
from random_systems import random_plant

import lqgap
from lqgap.batches import chunk_size, map_in_chunks
from lqgap.simulators.invariants import invariants
from lqgap.systems import change_coordinates, predictor_matrix


def test_the_vector_holds_the_predictor_markov_parameters_and_s():
    plant = random_plant(0)
    optimum = lqgap.solve(plant)
    vector = invariants(plant, length=2)
    Abar = predictor_matrix(optimum, plant)
    blocks = [
        plant.C @ optimum.F,
        plant.C @ Abar @ optimum.F,
        plant.C @ plant.B,
        plant.C @ Abar @ plant.B,
        optimum.S,
    ]
    np.testing.assert_allclose(vector, np.concatenate([np.ravel(block) for block in blocks]), atol=1e-12)


def test_it_does_not_depend_on_coordinates(seed):
    plant = random_plant(seed)
    other = change_coordinates(plant, np.random.default_rng(seed).normal(size=(3, 3)))
    np.testing.assert_allclose(invariants(plant, length=6), invariants(other, length=6), atol=1e-8)


def test_batches_of_any_size_are_mapped():
    for count in (1, 3, 64, 65, 1500):
        batch = lqgap.LQG.__new__(lqgap.LQG)
        for name in ("A", "B", "C", "Q", "R", "W", "V", "S0"):
            object.__setattr__(batch, name, jnp.arange(float(count)).reshape(-1, 1, 1))
        answer = map_in_chunks(lambda chunk: chunk.A[:, 0, 0] * 2, batch)
        np.testing.assert_array_equal(answer, 2 * np.arange(count))
    assert [chunk_size(n) for n in (1, 2, 65, 256, 257, 99999)] == [1, 64, 64, 64, 1024, 1024]
