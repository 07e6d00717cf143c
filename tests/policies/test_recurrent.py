import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import Recurrent


def test_it_starts_by_doing_nothing_and_remembers():
    policy = Recurrent(num_inputs=2, num_outputs=1, width=3, key=jax.random.key(0))
    memory, u = policy.step(policy.init(jax.random.key(0)), jnp.ones(1), jnp.zeros(2))
    np.testing.assert_array_equal(u, 0)
    assert np.any(memory != 0)


def test_scales_are_units_of_observations():
    plain = Recurrent(num_inputs=1, num_outputs=1, width=3, key=jax.random.key(0))
    scaled = Recurrent(num_inputs=1, num_outputs=1, width=3, output_scale=[10.0], key=jax.random.key(0))
    here, _ = plain.step(plain.init(jax.random.key(0)), jnp.ones(1), jnp.zeros(1))
    there, _ = scaled.step(scaled.init(jax.random.key(0)), jnp.full(1, 10.0), jnp.zeros(1))
    np.testing.assert_allclose(here, there)


def test_scales_are_units_of_inputs():
    plain = Recurrent(num_inputs=1, num_outputs=1, width=3, key=jax.random.key(0))
    scaled = Recurrent(num_inputs=1, num_outputs=1, width=3, input_scale=[10.0], key=jax.random.key(0))
    plain, scaled = (eqx.tree_at(lambda p: p.readout.weight, p, jnp.ones((1, 3))) for p in (plain, scaled))
    _, here = plain.step(plain.init(jax.random.key(0)), jnp.ones(1), jnp.ones(1))
    _, there = scaled.step(scaled.init(jax.random.key(0)), jnp.ones(1), jnp.full(1, 10.0))
    np.testing.assert_allclose(10 * here, there)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_sizes_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="width"):
        Recurrent(num_inputs=1, num_outputs=1, width=0, key=jax.random.key(0))
    with pytest.raises(lg.LqgapError, match="output_scale"):
        Recurrent(num_inputs=1, num_outputs=2, output_scale=[1.0], key=jax.random.key(0))
