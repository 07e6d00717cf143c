import equinox as eqx
import pytest

import lqgap as lg
from lqgap.experiments.methods.vtr import VTR


@pytest.mark.parametrize("preset", ["default", "as in the paper"])
def test_a_preset_is_changed_where_the_study_says_so(preset):
    paper = lg.adaptive.VTROptions.as_in_the_paper()
    expected = paper if preset == "as in the paper" else lg.adaptive.VTROptions()
    assert VTR(preset=preset)._options() == expected
    changed = VTR(preset=preset, plan="minimax")._options()
    assert (changed.plan, changed.confidence, changed.alarm) == (
        "minimax",
        expected.confidence,
        expected.alarm,
    )
    assert VTR(preset=preset, confidence="targets")._options().confidence == "targets"


def test_numbers_of_the_study_are_those_of_the_learner(setting, members):
    made = VTR(delta=0.01, warmup=4, family=False).make(setting()).policy
    assert (float(made.constants.delta), made.constants.num_warmup) == (0.01, 4)
    assert eqx.tree_equal(made.members, members)
    assert made.horizon is None
    assert VTR(runs=50).num_rollouts(256) == 50


@pytest.mark.slow
def test_a_plant_between_the_members_is_looked_for_on_a_finer_grid_of_the_family(setting, members):
    assert len(VTR().make(setting()).policy.members) > len(members)
    assert len(VTR().make(setting(family=members)).policy.members) == len(members)


@pytest.mark.slow
def test_a_learner_ends_with_its_task_and_a_file_holds_it(setting, tmp_path):
    made = VTR(preset="as in the paper", family=False).make(setting(ends=True)).policy
    assert made.horizon == 6
    lg.save_policy(tmp_path / "vtr", made)
    assert eqx.tree_equal(lg.load_policy(tmp_path / "vtr"), made)
