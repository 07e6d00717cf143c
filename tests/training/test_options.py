import jax
import pytest
from every_policy import PLANTS

import lqgap as lg
from lqgap.policies import StationaryLQG
from lqgap.training import TrainingOptions


def test_defaults_are_legal_and_rollouts_shrink_with_the_class():
    options = TrainingOptions()
    assert options.rollouts_for(2) == 256
    assert options.rollouts_for(100) == 16
    assert TrainingOptions(num_rollouts=3).rollouts_for(100) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", 0), ("num_rollouts", -1), ("learning_rate", 0.0), ("precision", "float16"), ("patience", 1.5)],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_options_are_named(name, value):
    with pytest.raises(lg.InvalidArgumentError, match=name):
        TrainingOptions(**{name: value})
    with pytest.raises(lg.InvalidArgumentError, match="TrainingOptions"):
        lg.train_robust(
            StationaryLQG(PLANTS[0]), PLANTS[0], horizon=3, key=jax.random.key(0), options={"steps": 3}
        )
