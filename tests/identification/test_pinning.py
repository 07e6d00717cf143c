import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.identification import pin_gain
from lqgap.policies import RandomProbe, Zero
from lqgap.simulators import Finite

BASES = np.array([[[0.7, 0.2], [0.0, 0.6]], [[0.0, 0.1], [-0.1, 0.1]]])


def member(t, *, W=None):
    W = np.eye(2) if W is None else W
    return lg.LQG(BASES[0] + t * BASES[1], [[0.5], [1.0]], np.eye(2), W=W, V=0.5 * np.eye(2))


@pytest.fixture(scope="module")
def record():
    """Of t = 0.5 with a process noise that the class does not know."""
    plant = member(0.5, W=np.array([[0.8, 0.3], [0.3, 1.4]]))
    run = lg.rollout(
        RandomProbe(40_001, Zero(num_inputs=1, num_outputs=2)), plant, horizon=40_000, key=jax.random.key(0)
    )
    return plant, run


def test_all_members_share_the_gain_of_the_plant_that_was_recorded(record):
    """Sigma is off by about S (2 / 40000)^1/2 = 2 %, and L by less."""
    plant, run = record
    members = Finite([member(t) for t in (0.0, 0.5, 1.0)], [[0.0], [0.5], [1.0]])
    pinned = pin_gain(members, run.y, run.u)
    optima, true = pinned.optima(), lg.solve(plant)
    np.testing.assert_allclose(optima.L, np.broadcast_to(optima.L[:1], optima.L.shape), atol=1e-9)
    np.testing.assert_allclose(optima.L[0], true.L, atol=0.02)
    np.testing.assert_allclose(optima.Sigma[1], true.Sigma, atol=0.1)
    np.testing.assert_allclose(pinned.systems.W[1], plant.W, atol=0.1)
    np.testing.assert_array_equal(pinned.parameters, members.parameters)


def test_what_cannot_have_such_residuals_is_left_out_or_refused(record):
    _, run = record
    fast = lg.LQG(5 * np.eye(2), [[0.5], [1.0]], np.eye(2), V=0.5 * np.eye(2))
    assert len(pin_gain(Finite([member(0.5), fast]), run.y, run.u)) == 1
    with pytest.raises(InvalidArgumentError, match="no member"):
        pin_gain(Finite([fast]), run.y, run.u)
    seen_in_part = lg.LQG(BASES[0], [[0.5], [1.0]], [[1.0, 0.0]])
    with pytest.raises(InvalidArgumentError, match="invertible"):
        pin_gain(Finite([seen_in_part]), run.y[:, :1], run.u)
