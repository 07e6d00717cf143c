import jax
import jax.numpy as jnp
import pytest

import lqgap as lg
from lqgap.experiments.assembly import Measured, choose
from lqgap.experiments.endurance import LONG, find_instability, run_on
from lqgap.experiments.judging import judge
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.results import TrainedPolicy
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
    assert run_on(workspace, StationaryLQG(workspace.members[1]), None, num_rollouts=8).trouble is None
    weak = LinearDynamic([[0.0]], [[0.0]], [[0.0]], [[-0.01]])
    text = run_on(workspace, weak, None, num_rollouts=8).trouble
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


class Resting(Tiring):
    """Acts as the policy inside for some steps, and with a quarter of the input afterwards."""

    def step(self, memory, y, u_last):
        inner, u = self.acting.step(memory[0], y, u_last)
        return (inner, memory[1] + 1), jnp.where(memory[1] < self.steps, 1.0, 0.25) * u


def test_a_policy_that_fails_after_the_horizon_is_noticed(workspace):
    lasting, tiring = (Tiring(StationaryLQG(workspace.members[1]), steps) for steps in (10**6, 40))
    assert run_on(workspace, lasting, None, num_rollouts=8).trouble is None
    assert run_on(workspace, tiring, None, num_rollouts=8).trouble.startswith(
        f"it diverges within {LONG * 10} steps on 64 of 64"
    )


def test_plants_that_a_search_found_are_tried_too(workspace):
    worse = lg.Finite([lg.LQG([[1.5]], [[1.0]], [[1.0]])], [[1.5]], names=("pole",))
    zero = Zero(num_inputs=1, num_outputs=1)
    for policy in (zero, Tiring(zero, 10**6)):
        assert "pole = 1.5" in run_on(workspace, policy, worse, num_rollouts=8).trouble


def test_a_policy_that_ends_has_no_long_run(workspace):
    planned = ModelBank(workspace.members.systems, horizon=10)
    assert run_on(workspace, planned, None, num_rollouts=8).trouble is None
    assert run_on(workspace, FiniteHorizonLQG(workspace.members[0], 10), None, num_rollouts=8).trouble is None


def test_what_costs_more_later_decides_in_a_task_that_goes_on(workspace):
    """One that acts for ten steps alone is better at first than a weak gain, and worse for ever after."""
    weak = LinearDynamic([[0.0]], [[0.0]], [[0.0]], [[-0.3]])
    tiring = Resting(StationaryLQG(workspace.members[1]), 11)
    idle = [1e9] * len(workspace.judged.A)
    judged = {
        name: judge(workspace, name, policy, num_rollouts=64, idle=idle)
        for name, policy in (("linear", weak), ("bank", tiring))
    }
    assert [each.unfit for each in judged.values()] == [None, None]
    first = {name: each.gaps.box_worst.mean for name, each in judged.items()}
    later = {name: each.gaps.later_worst.mean for name, each in judged.items()}
    assert first["bank"] < first["linear"]
    assert later["bank"] > later["linear"]
    file = TrainedPolicy(file="policy")
    found = {name: Measured(file, each, [], None, []) for name, each in judged.items()}
    assert choose(found).method == "linear"


def drifting(tmp_path, drift):
    text = STUDY.replace(
        "[0.9, 1.02]}", f"[0.9, 0.95]}}\nlimits = 3\nloads = {{size = 0.5, drift = {drift}}}"
    )
    plants = Plants(*parse_study(text, name="study.toml", folder=tmp_path), trust=False)
    return plants, Workspace(plants, [0, 1], tmp_path)


def test_a_load_that_may_drift_beyond_the_limits_speaks_against_no_controller(tmp_path):
    """It is of size 2 after 100 steps: a few runs are lost then, whether one knows the plant or not."""
    plants, workspace = drifting(tmp_path, 0.2)
    bank = plants.limited(ModelBank(workspace.members.systems))
    with pytest.warns(lg.LqgapWarning, match="limits of inputs are tight"):
        assert run_on(workspace, bank, None, num_rollouts=64).trouble is None
    never = plants.limited(Zero(num_inputs=1, num_outputs=1))
    assert "diverges" in run_on(workspace, never, None, num_rollouts=64).trouble


def test_where_limits_are_too_tight_for_any_controller_nothing_is_fit(tmp_path):
    plants, workspace = drifting(tmp_path, 5.0)
    bank = plants.limited(ModelBank(workspace.members.systems))
    trouble = run_on(workspace, bank, None, num_rollouts=64).trouble
    assert trouble.endswith("not even the controller that knows it holds it within the limits")


def test_linear_policies_of_one_shape_share_a_program(workspace, caplog):
    first, second = (StationaryLQG(workspace.members[index]) for index in (0, 1))
    find_instability(workspace, first, None)
    with jax.log_compiles(), caplog.at_level("WARNING"):
        find_instability(workspace, second, None)
    assert "Compiling" not in caplog.text
