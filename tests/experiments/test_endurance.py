import jax.numpy as jnp
import pytest

import lqgap as lg
from lqgap.experiments.endurance import LONG, find_collapse
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.units import Workspace
from lqgap.policies import FiniteHorizonLQG, LinearDynamic, ModelBank, StationaryLQG, Zero

STUDY = """
horizon = 10
[plant]
A = [["pole"]]
B = [[1.0]]
C = [[1.0]]
parameters = {pole = [0.9, 1.02]}
[grid]
points = 2
[real]
count = 2
"""


@pytest.fixture
def workspace(tmp_path):
    plants = Plants(*parse_study(STUDY, name="study.toml", folder=tmp_path), trust=False)
    return Workspace(plants, [0, 1], tmp_path)


def test_a_linear_policy_is_judged_by_its_closed_loops(workspace):
    """u = -0.01 y leaves poles of up to 1.01, which ten steps hardly show."""
    assert find_collapse(workspace, StationaryLQG(workspace.members[1]), None) is None
    weak = LinearDynamic([[0.0]], [[0.0]], [[0.0]], [[-0.01]])
    text = find_collapse(workspace, weak, None)
    assert text.startswith("its closed loop is unstable (spectral radius 1.01) on ")
    assert text.endswith("such as pole = 1.02")


class Tiring(lg.policies.policy.AbstractWrapper):
    """Acts as the policy inside for some steps, and the wrong way afterwards."""

    acting: lg.policies.AbstractPolicy
    steps: int

    @property
    def inside(self):
        return self.acting

    def init(self, key):
        return self.acting.init(key), jnp.zeros((), int)

    def step(self, memory, y, u_last):
        inner, u = self.acting.step(memory[0], y, u_last)
        return (inner, memory[1] + 1), jnp.where(memory[1] < self.steps, 1.0, -1.0) * u


def test_a_policy_that_fails_after_the_horizon_is_noticed(workspace):
    lasting, tiring = (Tiring(StationaryLQG(workspace.members[1]), steps) for steps in (10**6, 40))
    assert find_collapse(workspace, lasting, None) is None
    assert find_collapse(workspace, tiring, None).startswith(
        f"it diverges within {LONG * 10} steps on 64 of 64"
    )


def test_plants_that_a_search_found_are_tried_too(workspace):
    worse = lg.Finite([lg.LQG([[1.5]], [[1.0]], [[1.0]])], [[1.5]], names=("pole",))
    zero = Zero(num_inputs=1, num_outputs=1)
    for policy in (zero, Tiring(zero, 10**6)):
        assert "pole = 1.5" in find_collapse(workspace, policy, worse)


def test_a_policy_that_ends_has_no_long_run(workspace):
    planned = ModelBank(workspace.members.systems, horizon=10)
    assert find_collapse(workspace, planned, None) is None
    assert find_collapse(workspace, FiniteHorizonLQG(workspace.members[0], 10), None) is None
