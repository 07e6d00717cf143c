import pytest

import lqgap as lg
from lqgap.training import TrainingOptions
from lqgap.training.options import read_options


def test_defaults_are_legal_and_rollouts_shrink_with_the_class():
    options = read_options(None)
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
        read_options({"steps": 3})
