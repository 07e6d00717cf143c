import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive.vtr.fallback import require_fallback, stabilizer_or_none, zero_or_stabilizer
from lqgap.evaluation.exact import closed_loop_radius
from lqgap.policies import LinearDynamic, StationaryLQG
from lqgap.simulators import Finite


def plant(pole, gain=1.0):
    return lg.LQG([[pole]], [[gain]], [[1.0]])


def test_stable_plants_are_left_alone():
    fallback = zero_or_stabilizer(Finite([plant(0.9), plant(-0.5)]))
    _, u = fallback.step(fallback.init(jax.random.key(0)), jnp.ones(1), jnp.zeros(1))
    np.testing.assert_array_equal(u, 0.0)


def test_plants_that_are_not_stable_are_stabilised():
    members = Finite([plant(1.1), plant(1.05), plant(0.9)])
    fallback = zero_or_stabilizer(members)
    assert isinstance(fallback, LinearDynamic)
    assert max(float(closed_loop_radius(fallback, member)) for member in members) < 1


@pytest.mark.usefixtures("as_users_run_it")
def test_a_given_policy_is_taken_if_it_fits():
    members = Finite([plant(1.1)])
    given = StationaryLQG(plant(1.1))
    assert require_fallback(given, members) is given
    wide = StationaryLQG(lg.LQG(np.eye(2) * 0.5, np.eye(2), np.eye(2)))
    with pytest.raises(lg.InvalidArgumentError, match="inputs, outputs"):
        require_fallback(wide, members)
    with pytest.raises(lg.InvalidArgumentError, match="fallback is a str"):
        require_fallback("none", members)
    opposite = Finite([plant(1.3, 1.0), plant(1.3, -1.0)])
    assert stabilizer_or_none(opposite) is None
    with pytest.raises(lg.InvalidArgumentError, match="fallback is missing"):
        zero_or_stabilizer(opposite)
