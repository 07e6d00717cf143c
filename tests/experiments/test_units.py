import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lqgap as lg
from lqgap.experiments import units
from lqgap.experiments.adaptation import adapt
from lqgap.experiments.judging import judge, optimum
from lqgap.experiments.members import audit
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod, Knowing, Made
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants, key_for
from lqgap.experiments.results import TrainedPolicy
from lqgap.experiments.robustness import least_margins
from lqgap.policies import BoundedChanges, Saturated


def plants_of(tmp_path, plant, more=""):
    study, source = parse_study(f"horizon = 5\n[plant]\n{plant}\n{more}", name="study.toml", folder=tmp_path)
    return Plants(study, source, trust=False)


@pytest.mark.slow
def test_gaps_are_split_by_where_plants_come_from(tmp_path, small):
    plants = Plants(*small, trust=False)
    workspace = units.Workspace(plants, audit(plants).kept, tmp_path)
    total = 4 + 9 + 4
    assert len(workspace.judged.A) == total
    of_class, of_map, of_real = workspace.split(np.arange(float(total)))
    assert of_class.tolist() == [0, 1, 2, 3]
    assert of_real.tolist() == [13, 14, 15, 16]
    assert len(of_map) == 9
    assert workspace.describe(0) == workspace.members.describe(0)
    assert workspace.describe(4) == plants.tried.describe(0)
    assert [workspace.describe(index) for index in (15, 16)] == [
        "given 1 (stiffness = 9, gain = 2)",
        "outside 1",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_gaps_are_those_of_a_task_that_ends_or_goes_on(tmp_path, ends):
    more = "[grid]\npoints = 2\n[methods]\nbank = {}\n[evaluation]\nrollouts = 200\nhorizons = [5, 9]\nmap_points = 2"
    plants = plants_of(tmp_path, 'family = "mass_spring_damper"', more)
    study = plants.study.model_copy(update={"ends": ends})
    plants = Plants(study, plants.source, trust=False)
    workspace = units.Workspace(plants, [0, 1, 2, 3], tmp_path)
    bank = workspace.make("bank", METHODS["bank"](), tmp_path).policy
    assert bank.horizon == (5 if ends else None)
    judged = judge(workspace, "bank", bank, num_rollouts=200, idle=[np.inf] * len(workspace.is_solvable))
    alone = lg.gap(
        bank, workspace.members, horizon=5, key=key_for(0, units.NOISE), num_rollouts=200, ends=ends
    )
    np.testing.assert_allclose(judged.gaps.grid_worst.mean, alone.worst, rtol=1e-9)
    grown = units.by_horizon(workspace, "bank", bank, judged.found, num_rollouts=200).series
    assert grown.values[1].mean > grown.values[0].mean


UNSTABLE = 'A = [[1.1]]\nB = [["push"]]\nC = [[1.0]]\nparameters = {push = [1.0, 2.0]}'


NASTY = st.sampled_from([0, 1, -1, 0.9, 1.1, 1e-300, 1e12, 1e300, "nan", "inf", '"drift"', '"-drift"', "[1]"])


@pytest.mark.slow
@hypothesis.settings(max_examples=500)
@given(st.dictionaries(st.sampled_from("ABCQRWV"), NASTY), NASTY, NASTY)
def test_a_fuzzed_plant_is_audited_or_refused(tmp_path_factory, matrices, low, high):
    folder = tmp_path_factory.getbasetemp()
    matrices = {"A": 0.5, "B": 1, "C": 1, **matrices}
    plant = [f"{name} = [[{value}]]" for name, value in matrices.items()]
    plant.append(f"parameters = {{drift = [{low}, {high}]}}")
    message = ""
    try:
        plants = plants_of(folder, "\n".join(plant), "[grid]\npoints = 2")
        optimum(units.Workspace(plants, audit(plants).kept, folder))
    except lg.LqgapError as error:
        message = str(error)
    assert "\n" not in message


class Vain(AbstractMethod):
    label, kind, about = "Vain training", "trained", "It gains nothing."

    def make(self, setting):
        lg.errors.warn(f"nothing was gained in {setting.horizon} steps")
        return Made(lg.policies.Zero(num_inputs=1, num_outputs=1), has_improved=False)


def test_what_a_method_complains_of_names_it_and_what_a_file_can_hold_is_kept(tmp_path):
    workspace = units.Workspace(plants_of(tmp_path, UNSTABLE, "[grid]\npoints = 2"), [0, 1], tmp_path)
    with pytest.warns(lg.LqgapWarning, match="Vain training: nothing was gained in 5 steps"):
        kept = units.keep(workspace, lambda: workspace.make("vain", Vain(), tmp_path), "vain-0")
    assert not kept.has_improved
    assert kept.file == "policies/vain-0.safetensors"
    assert lg.load_policy(tmp_path / kept.file).num_inputs == 1
    assert units.keep(workspace, lambda: Made(Knowing(None)), "knowing") == TrainedPolicy()


LIMITED = """
family = "mass_spring_damper"
limits = [4.9, 5.2]
rate_limits = 0.5
operating_point = {u0 = [5.0], y0 = [20.0]}
"""


def workspace_within_limits(tmp_path, more_of_plant=""):
    more = "[grid]\npoints = 2\n[real]\ncount = 2\n[evaluation]\nrollouts = 8\ntrajectories = 2"
    plants = plants_of(tmp_path, LIMITED + more_of_plant, more)
    return units.Workspace(plants, [0, 1, 2, 3], tmp_path)


def test_the_limits_of_a_study_are_those_of_every_policy_and_of_its_file(tmp_path):
    workspace = workspace_within_limits(tmp_path)
    made = workspace.make("bank", METHODS["bank"](), None)
    kept = units.keep(workspace, lambda: made, "bank")
    for policy in (made.policy, lg.load_policy(tmp_path / kept.file)):
        assert isinstance(policy, Saturated)
        np.testing.assert_allclose(policy.limits.as_given, [[-0.1], [0.2], [0.15]], rtol=1e-12)
    knowing = workspace.make("oracle", METHODS["oracle"](), None).policy
    assert isinstance(knowing.on(workspace.members[0]), Saturated)


def test_that_training_with_loads_knows_no_limits_is_said(tmp_path):
    workspace = workspace_within_limits(tmp_path, "loads = {size = 1.0, drift = 0.1}")
    with pytest.warns(lg.LqgapWarning) as told:
        workspace.make("vain", Vain(), tmp_path)
    assert "Vain training: with loads, training knows no limits of inputs; it is judged within them" in [
        str(warning.message) for warning in told
    ]


@pytest.mark.slow
def test_with_loads_policies_are_in_changes_and_runs_are_inputs_within_limits(tmp_path):
    workspace = workspace_within_limits(tmp_path, "loads = {size = 1.0, drift = 0.1}")
    made = workspace.make("nominal", METHODS["nominal"](), None)
    assert isinstance(made.policy, BoundedChanges)
    assert workspace.plants.limits is None
    found = units.runs(workspace, "nominal", made.policy, num_rollouts=8).runs
    u = np.array([run.u for run in found])[..., 0]
    assert 4.9 - 1e-9 <= u.min() < u.max() <= 5.2 + 1e-9
    assert np.abs(np.diff(u, axis=1, prepend=5.0)).max() == pytest.approx(0.15, rel=1e-9)
    assert {margin.kind for margin in least_margins(workspace, made.policy)} >= {"phase", "delay"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nominal", "oracle", "vtr"])
def test_runs_are_within_limits_and_about_the_operating_point(tmp_path, name):
    workspace = workspace_within_limits(tmp_path)
    policy = workspace.make(name, METHODS[name](), None).policy
    found = units.runs(workspace, name, policy, num_rollouts=8).runs
    u, y = (np.array([getattr(run, signal) for run in found])[..., 0] for signal in ("u", "y"))
    assert u.min() >= 4.9
    assert u.max() <= 5.2
    moves = np.abs(np.diff(u, axis=1, prepend=5.0))
    assert moves.max() == pytest.approx(0.15, rel=1e-9)
    assert np.abs(y - 20).max() < 15
    if name == "vtr":
        assert adapt(workspace, name, policy).runs[0].set_size is not None
