import jax
import numpy as np
import pytest
from ten_models import ten_models

from lqgap.errors import InvalidArgumentError
from lqgap.theory import model_features, sample_features
from lqgap.theory.constants.samples import draw_samples


@pytest.mark.slow
def test_values_are_the_products_of_features():
    members = ten_models()
    samples = draw_samples(members, length=3, num_runs=5, num_steps=4, key=jax.random.key(0))
    assert samples.values.shape == (10, 20)
    thetas = jax.vmap(lambda o, p: model_features(o, p, length=3))(members.optima(), members.systems)
    phis = jax.vmap(sample_features)(samples.target, samples.window)
    np.testing.assert_allclose(thetas @ phis.T, samples.values, rtol=1e-9)


def test_windows_are_full_and_inputs_those_of_the_controllers():
    samples = draw_samples(ten_models(), length=3, num_runs=5, num_steps=4, key=jax.random.key(1))
    assert np.all(np.asarray(samples.window) != 0)
    # The second entry of a window (u_{t-2}) is the first (u_{t-1}) of the window before it.
    window = np.asarray(samples.window).reshape(5, 4, -1)
    np.testing.assert_array_equal(window[:, 1:, 1], window[:, :-1, 0])
    with pytest.raises(InvalidArgumentError, match="num_runs is 0"):
        draw_samples(ten_models(), length=3, num_runs=0, num_steps=4, key=jax.random.key(1))
