import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import LinearDynamic, Zero


def test_the_recursion_by_hand():
    policy = LinearDynamic([[0.5]], [[2.0]], [[3.0]], [[-1.0]])
    memory = policy.init(jax.random.key(0))
    memory, first = policy.step(memory, jnp.asarray([1.0]), jnp.zeros(1))
    memory, second = policy.step(memory, jnp.asarray([4.0]), first)
    np.testing.assert_allclose([first[0], second[0]], [-1.0, 3.0 * 2.0 - 4.0])


def test_a_lost_observation_is_taken_as_the_last_one():
    policy = LinearDynamic(Dc=[[2.0]])
    memory, _ = policy.step(policy.init(jax.random.key(0)), jnp.asarray([3.0]), jnp.zeros(1))
    _, u = policy.step(memory, jnp.asarray([jnp.nan]), jnp.zeros(1))
    assert u[0] == 6.0


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (dict(Dc=None), "Dc is missing"),
        (dict(Ac=[[1.0]], Dc=[[1.0]]), "belong together"),
        (dict(Ac=[[1.0]], Bc=[[1.0, 2.0]], Cc=[[1.0]], Dc=[[1.0]]), "Bc has shape"),
        (dict(Ac=[[1.0, 2.0]], Bc=[[1.0]], Cc=[[1.0]], Dc=[[1.0]]), "square"),
        (dict(Dc=[[np.nan]]), "NaN"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_matrices_that_do_not_fit_are_named(matrices, message):
    with pytest.raises(lg.LqgapError, match=message):
        LinearDynamic(**matrices)


def test_zero_does_nothing():
    policy = Zero(num_inputs=2, num_outputs=1)
    _, u = policy.step(policy.init(jax.random.key(0)), jnp.ones(1), jnp.ones(2))
    np.testing.assert_array_equal(u, 0)
    with pytest.raises(lg.InvalidArgumentError, match="num_inputs"):
        Zero(num_inputs=0, num_outputs=1)
