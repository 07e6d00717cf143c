import pytest

from lqgap.experiments.methods.robust import Robust
from lqgap.policies import ModelBank, ProbingBank, Recurrent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cls"), [("bank", ModelBank), ("probing", ProbingBank), ("recurrent", Recurrent)]
)
def test_each_kind_of_policy_is_trained_with_checkpoints(setting, tmp_path, kind, cls):
    made = Robust(policy=kind, steps=2).make(setting())
    assert isinstance(made.policy, cls)
    assert [look["step"] for look in made.history] == [0, 2]
    assert list(tmp_path.glob("*.safetensors"))
