import itertools

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.identification import pin_gain
from lqgap.policies import ModelBank, RandomProbe, Zero
from lqgap.simulators import Finite
from lqgap.theory.constants.complexity import class_features, low_rank_dimension, numerical_rank

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


def test_a_record_of_unknown_noise_lowers_the_complexity_of_a_class_and_the_gap_of_its_bank(record):
    """Nine noises for each of five plants; as one gain is known, features are polynomials of t (2 l + 2 = 6)."""
    plant, run = record
    noises = [np.diag(levels) for levels in itertools.product((0.05, 0.3, 2.0), repeat=2)]
    members = Finite([member(t, W=W) for t in np.linspace(0, 1, 5) for W in noises])
    pinned = pin_gain(members, run.y, run.u).unique()
    assert len(pinned) == 5
    ranks = [numerical_rank(class_features(each, length=2)) for each in (members, pinned)]
    assert ranks[0] > 30
    assert ranks[1] <= low_rank_dimension(num_parameters=1, length=2) == 7
    before, after = (
        lg.gap(ModelBank(each.systems), plant, horizon=100, key=jax.random.key(1), num_rollouts=256)
        for each in (members, pinned)
    )
    assert after.mean + 4 * after.stderr < 0.5 * before.mean


def test_what_cannot_have_such_residuals_is_left_out_or_refused(record):
    _, run = record
    fast = lg.LQG(5 * np.eye(2), [[0.5], [1.0]], np.eye(2), V=0.5 * np.eye(2))
    assert len(pin_gain(Finite([member(0.5), fast]), run.y, run.u)) == 1
    with pytest.raises(InvalidArgumentError, match="no member"):
        pin_gain(Finite([fast]), run.y, run.u)
    seen_in_part = lg.LQG(BASES[0], [[0.5], [1.0]], [[1.0, 0.0]])
    with pytest.raises(InvalidArgumentError, match="invertible"):
        pin_gain(Finite([seen_in_part]), run.y[:, :1], run.u)
