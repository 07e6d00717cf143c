from dataclasses import replace
from types import SimpleNamespace

import pytest

from lqgap.experiments.methods.robust import Robust
from lqgap.policies import DualBank, ModelBank, Recurrent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cls"),
    [("bank", ModelBank), ("dual", DualBank), ("recurrent", Recurrent)],
)
def test_each_kind_of_policy_is_trained_with_checkpoints(setting, tmp_path, kind, cls):
    made = Robust(policy=kind, steps=2).make(setting())
    assert isinstance(made.policy, cls)
    assert [look["step"] for look in made.history] == [0, 2]
    assert list(tmp_path.glob("*.safetensors"))


def test_training_is_told_the_limits_of_inputs(setting):
    told = {}

    class Told(Robust):
        def train_fn(self):
            def train(policy, _, **how):
                told.update(how)
                return SimpleNamespace(policy=policy, history=(), has_improved=True)

            return train

    Told().make(replace(setting(), limits=(-1.0, 1.0, 0.1)))
    assert told["limits"] == (-1.0, 1.0, 0.1)
