"""A study so small that every command runs in seconds."""

import pytest

import lqgap as lg

TINY = """
horizon = 4
[plant]
family = "unknown_sign"
[methods]
bank = {}
robust = {policy = "bank", steps = 2}
[real]
count = 1
plants = [{sign = -1}]
[evaluation]
rollouts = 16
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def policy(tmp_path):
    """The file of a policy that fits the study."""
    path = tmp_path / "bank.safetensors"
    lg.save_policy(path, lg.policies.ModelBank(lg.plants.unknown_sign().grid(2).systems, horizon=4))
    return path
