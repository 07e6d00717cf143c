from dataclasses import replace
from types import SimpleNamespace

import pytest

from lqgap.experiments.methods.robust import Robust
from lqgap.policies import DualBank, ModelBank, Recurrent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cls", "num_stages"),
    [("bank", ModelBank, 2), ("dual", DualBank, 3), ("recurrent", Recurrent, 1)],
)
def test_each_kind_of_policy_is_trained_in_its_stages_with_checkpoints(
    setting, tmp_path, kind, cls, num_stages
):
    """By derivatives; banks answer the adversary before, and choices of inputs are smoothed after."""
    made = Robust(policy=kind, steps=2).make(setting())
    assert isinstance(made.policy, cls)
    stages = range(1, num_stages + 1)
    looks = [(look["stage"], look["step"]) for look in made.history]
    assert looks == [(stage, step) for stage in stages for step in (0, 2)]
    assert {path.stem for path in tmp_path.glob("*.safetensors")} == {str(stage) for stage in stages}


def test_training_is_told_the_limits_of_inputs(setting):
    told = {}

    class Told(Robust):
        def train_fn(self):
            def train(policy, _, **how):
                told.update(how)
                return SimpleNamespace(policy=policy, history=(), has_improved=True, returned="as trained")

            return train

    Told().make(replace(setting(), limits=(-1.0, 1.0, 0.1)))
    assert told["limits"] == (-1.0, 1.0, 0.1)
