import pytest

import lqgap as lg
from lqgap.experiments.methods.explore import Explore


def test_the_exploration_is_as_long_as_the_horizon_or_the_study_says(setting):
    window = Explore().make(setting()).policy.plant.window
    assert Explore().make(setting()).policy.first_fit == 4 * window
    assert Explore().make(setting(horizon=99_999)).policy.first_fit == 2155  # 1e5^(2/3)
    assert Explore(steps=500).make(setting()).policy.first_fit == 500


def test_too_short_an_exploration_is_refused(setting):
    with pytest.raises(lg.InvalidArgumentError, match="num_random"):
        Explore(steps=3).make(setting())
