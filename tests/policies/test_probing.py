import numpy as np
import pytest
from programs import replay
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.policies import RandomProbe, StationaryLQG, Zero


def test_random_inputs_end_when_they_should_and_the_successor_has_watched():
    plant = random_plant(0)
    y, u = random_record(0, plant)
    expected = replay(StationaryLQG(plant), y, u)[1]
    chosen = replay(RandomProbe(4, StationaryLQG(plant)), y, u)[1]
    np.testing.assert_array_equal(chosen[4:], expected[4:])
    assert np.all(chosen[:4] != expected[:4])


def test_random_inputs_have_the_scale_asked_for():
    probe = RandomProbe(4000, Zero(num_inputs=1, num_outputs=1), scale=3.0)
    drawn = replay(probe, np.zeros((4000, 1)), np.zeros((4000, 1)))[1]
    # The variance of n draws has a relative standard error of sqrt(2/n); four of them.
    assert abs(np.var(drawn) / 9 - 1) < 4 * np.sqrt(2 / 4000)
    assert replay(probe, np.zeros((2, 1)), np.zeros((2, 1)), seed=1)[1][0] != drawn[0]


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="steps"):
        RandomProbe(-1, Zero(num_inputs=1, num_outputs=1))
    with pytest.raises(lg.InvalidArgumentError, match="then is a str"):
        RandomProbe(3, "policy")
    with pytest.raises(lg.InvalidArgumentError, match="scale"):
        RandomProbe(3, Zero(num_inputs=1, num_outputs=1), scale=0.0)
