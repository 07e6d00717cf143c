import jax
import jax.numpy as jnp
import pytest

import lqgap as lg
from lqgap.policies import LinearDynamic, Stabilized, Zero


def test_the_input_is_the_sum_of_both():
    policy = Stabilized(LinearDynamic(Dc=[[2.0]]), LinearDynamic(Dc=[[0.5]]))
    _, u = policy.step(policy.init(jax.random.key(0)), jnp.ones(1), jnp.zeros(1))
    assert u[0] == 2.5


@pytest.mark.usefixtures("as_users_run_it")
def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(lg.InvalidArgumentError, match="expected a LinearDynamic"):
        Stabilized(Zero(num_inputs=1, num_outputs=1), Zero(num_inputs=1, num_outputs=1))
    with pytest.raises(lg.InvalidArgumentError, match="differ"):
        Stabilized(LinearDynamic(Dc=[[2.0]]), Zero(num_inputs=2, num_outputs=1))
