import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import LinearDynamic, Mixture, Zero


@functools.cache
def gain(value):
    return LinearDynamic(Dc=[[value]])


def test_one_policy_is_drawn_for_good_with_its_probability():
    mixture = Mixture([gain(1.0), gain(2.0)], [1.0, 3.0])

    def inputs(key):
        memory, first = mixture.step(mixture.init(key), jnp.ones(1), jnp.zeros(1))
        return jnp.concatenate([first, mixture.step(memory, jnp.ones(1), first)[1]])

    drawn = np.asarray(jax.vmap(inputs)(jax.random.split(jax.random.key(0), 4000)))
    np.testing.assert_array_equal(drawn[:, 0], drawn[:, 1])
    # Four standard errors of a share of 4000 draws.
    assert abs(np.mean(drawn[:, 0] == 2) - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: ([],), "empty"),
        (lambda: ([gain(1.0), Zero(num_inputs=2, num_outputs=1)],), "differ"),
        (lambda: ([gain(1.0), gain(2.0)], [1.0]), "one for each"),
        (lambda: ([gain(1.0), gain(2.0)], [1.0, -1.0]), "probabilities"),
        (lambda: ([gain(1.0), gain(2.0)], [0.0, 0.0]), "probabilities"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_cannot_be_mixed_is_refused(arguments, message):
    with pytest.raises(lg.InvalidArgumentError, match=message):
        Mixture(*arguments())
