import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.systems import ValueTarget, arx_matrix, clipped_beliefs, value_target
from lqgap.theory import model_features, num_features, sample_features
from lqgap.theory.constants.features import prediction_features


def sample_of(rng, model, optimum, *, length):
    """A sample with arbitrary history; the model acted on has its own belief."""
    xhat, u = rng.normal(size=model.num_states), rng.normal(size=model.num_inputs)
    window = rng.normal(size=length * (model.num_inputs + model.num_outputs) + model.num_inputs)
    return value_target(optimum, model, xhat, u), jnp.asarray(window)


@pytest.mark.parametrize("length", [1, 4])
def test_the_inner_product_is_the_mean_of_the_target(seed, length):
    rng = np.random.default_rng(seed)
    acted_on, plant = random_plant(seed), random_plant(seed + 10)
    optimum = lqgap.solve(plant)
    target, window = sample_of(rng, acted_on, lqgap.solve(acted_on), length=length)
    expected = target.mean(arx_matrix(optimum, plant, length=length) @ window, optimum.S)
    found = model_features(optimum, plant, length=length) @ sample_features(target, window)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_on_a_record_it_is_the_target_of_the_clipped_belief(seed):
    """From the definition: y' of the model's clipped belief, then the bias by the model acted on."""
    rng = np.random.default_rng(seed)
    acted_on, plant = random_plant(seed), random_plant(seed + 10)
    optimum, acted = lqgap.solve(plant), lqgap.solve(acted_on)
    y, u = rng.normal(size=(9, 2)), rng.normal(size=(9, 2))
    belief = clipped_beliefs(optimum, plant, y, u, length=3)[-1]
    target = value_target(acted, acted_on, rng.normal(size=3), u[-1])
    m = plant.C @ (plant.A @ belief + plant.B @ u[-1])
    expected = target.mean(m, optimum.S)
    window = lqgap.systems.arx_window(jnp.asarray(y), jnp.asarray(u), length=3)[-1]
    np.testing.assert_allclose(
        model_features(optimum, plant, length=3) @ sample_features(target, window), expected, rtol=1e-9
    )


def test_there_are_as_many_as_the_formula_says():
    plant = random_plant(0)
    optimum = lqgap.solve(plant)
    assert num_features(num_inputs=2, num_outputs=2, length=4) == 553
    for length in (1, 4):
        expected = num_features(num_inputs=2, num_outputs=2, length=length)
        assert model_features(optimum, plant, length=length).shape == (expected,)
        target, window = sample_of(np.random.default_rng(0), plant, optimum, length=length)
        assert sample_features(target, window).shape == (expected,)
    with pytest.raises(InvalidArgumentError, match="length is 0"):
        num_features(num_inputs=2, num_outputs=2, length=0)


def test_they_are_mapped_and_compiled_and_give_distances_as_quadratic_forms():
    rng = np.random.default_rng(0)
    systems = lqgap.stack([random_plant(seed) for seed in range(3)])
    optima = jax.vmap(lqgap.solve)(systems)
    thetas = jax.jit(jax.vmap(lambda o, p: model_features(o, p, length=2)))(optima, systems)
    first, plant = jax.tree.map(lambda leaf: leaf[0], (optima, systems))
    samples = [sample_of(rng, plant, first, length=2) for _ in range(5)]
    targets: ValueTarget = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[s[0] for s in samples])
    phis = jax.jit(jax.vmap(sample_features))(targets, jnp.stack([s[1] for s in samples]))
    values = thetas @ phis.T
    difference = thetas[0] - thetas[1]
    np.testing.assert_allclose(
        difference @ (phis.T @ phis) @ difference, np.sum((values[0] - values[1]) ** 2), rtol=1e-8
    )


def test_a_model_may_be_given_by_what_it_predicts():
    plant = random_plant(1)
    optimum = lqgap.solve(plant)
    N = arx_matrix(optimum, plant, length=2)
    np.testing.assert_array_equal(prediction_features(N, optimum.S), model_features(optimum, plant, length=2))
