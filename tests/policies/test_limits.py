import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies.limits import read_limits


def test_inputs_are_clipped_each_to_its_interval():
    limits = read_limits((-1.0, [0.5, 2.0]), num_inputs=2)
    np.testing.assert_array_equal(limits.clip(jnp.asarray([3.0, -3.0]), jnp.zeros(2)), [0.5, -1.0])


def test_no_limits_change_nothing():
    u = jnp.asarray([1e300, -1e300])
    np.testing.assert_array_equal(read_limits(None, num_inputs=2).clip(u, -u), u)


def test_an_input_moves_no_faster_than_its_rate_and_stays_in_its_interval():
    limits = read_limits((-1.0, 1.0, [0.25, np.inf]), num_inputs=2)
    np.testing.assert_array_equal(limits.clip(jnp.asarray([5.0, 5.0]), jnp.asarray([0.5, -1.0])), [0.75, 1.0])
    np.testing.assert_array_equal(limits.clip(jnp.asarray([-5.0, 0.3]), jnp.asarray([0.9, 0.0])), [0.65, 0.3])
    np.testing.assert_array_equal(limits.clip(jnp.asarray([5.0, 0.0]), jnp.asarray([4.0, 0.0])), [1.0, 0.0])


def test_what_limits_give_reads_as_the_same_limits():
    limits = read_limits((-1.0, 1.0, 0.25), num_inputs=2)
    again = read_limits(limits.as_given, num_inputs=2)
    assert all(np.array_equal(one, other) for one, other in zip(limits.as_given, again.as_given, strict=True))
    assert not limits.is_free
    assert read_limits(None, num_inputs=1).is_free


@pytest.mark.parametrize(
    "limits",
    [
        1.0,
        (1.0,),
        (2.0, 1.0),
        ("a", "b"),
        "12",
        (0.0, 1.0, 0.0),
        (0.0, 1.0, 2.0, 3.0),
        ([1.0, 2.0, 3.0], 4.0),
        (np.nan, 1.0),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_interval_is_refused(limits):
    with pytest.raises(lg.InvalidArgumentError, match="limits is"):
        read_limits(limits, num_inputs=2)
