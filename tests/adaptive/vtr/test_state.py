import jax
import jax.numpy as jnp
import numpy as np
from naive_vtr import CONSTANTS, random_class

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants
from lqgap.adaptive.vtr.state import belief_from_window, clip_model
from lqgap.systems import arx_window, clipped_beliefs


def test_what_is_remembered_does_not_grow_with_the_horizon():
    sizes = []
    for horizon in (10, 100_000):
        algorithm = LQGVTR(lg.stack(random_class(0)), horizon=horizon, constants=VTRConstants(**CONSTANTS))
        memory = algorithm.init(jax.random.key(0))
        sizes.append(sum(np.size(leaf) for leaf in jax.tree.leaves(memory) if hasattr(leaf, "size")))
    assert sizes[0] == sizes[1]


def test_a_model_that_has_not_been_running_takes_its_belief_from_the_window():
    plant, length = random_class(1)[0], 6
    optimum = lg.solve(plant)
    draws = np.random.default_rng(0)
    y, u = jnp.asarray(draws.normal(size=(20, 1))), jnp.asarray(draws.normal(size=(20, 1)))
    xhat = belief_from_window(optimum, plant, y[: -length - 1 : -1], u[-2 : -length - 2 : -1])
    expected = clipped_beliefs(optimum, plant, y, u, length=length)[-1]
    np.testing.assert_allclose(xhat, expected, rtol=1e-10)
    N, norm = clip_model(optimum, plant, length)
    window = arx_window(y, u, length=length)[-1]
    np.testing.assert_allclose(N @ window, plant.C @ (plant.A @ expected + plant.B @ u[-1]), rtol=1e-10)
    Abar = np.asarray(plant.A - optimum.F @ plant.C)
    left_out = np.asarray(plant.C) @ np.linalg.matrix_power(Abar, length) @ np.asarray(plant.A)
    np.testing.assert_allclose(norm, np.linalg.norm(left_out) / np.sqrt(float(optimum.S[0, 0])))
