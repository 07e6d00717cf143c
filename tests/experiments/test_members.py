import pathlib

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments import members as members_module
from lqgap.experiments import plants as plants_module
from lqgap.experiments.members import FAR, audit, grow
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.results import GrownClass
from lqgap.experiments.units import Workspace
from lqgap.progress import time_budget


def plants_of(tmp_path, plant, more=""):
    study, source = parse_study(f"horizon = 5\n[plant]\n{plant}\n{more}", name="study.toml", folder=tmp_path)
    return Plants(study, source, trust=False)


@pytest.mark.slow
def test_members_without_an_optimum_are_removed_and_unstable_ones_are_kept(tmp_path):
    """B = 0 with a marginal mode cannot be stabilised; B = 1 can."""
    plant = 'A = [[1.0]]\nB = [["push"]]\nC = [[1.0]]\nparameters = {push = {choices = [0.0, 1.0]}}'
    plants = plants_of(tmp_path, plant)
    found = audit(plants)
    assert found.kept == [1]
    assert found.audit.num_kept == 1
    assert "removed 1 of 2 members" in found.audit.actions[0]
    assert "push = 0" in found.audit.actions[0]
    assert "kept 1 members that are open-loop unstable" in found.audit.actions[1]
    assert len(Workspace(plants, found.kept, tmp_path).members) == 1


def test_a_class_without_any_optimum_is_an_error(tmp_path):
    plant = 'A = [["a"]]\nB = [[0.0]]\nC = [[1.0]]\nparameters = {a = [1.0, 2.0]}'
    with pytest.raises(lg.NotConvergedError, match="no member of the class has an optimum"):
        audit(plants_of(tmp_path, plant))


PUSHED = 'A = [[1.1]]\nB = [["push"]]\nC = [[1.0]]\nV = [[1e-6]]\nparameters = {push = [0.2, 4.0]}'


def test_a_class_grows_where_its_bank_is_far_worse_than_on_its_members(tmp_path, monkeypatch):
    """With so good a sensor the bank commits itself to one of two members, whichever is nearer."""
    monkeypatch.setattr(plants_module, "NUM_COARSE", 2)
    plants = plants_of(tmp_path, PUSHED)
    assert np.asarray(plants.members.parameters).tolist() == [[0.2], [4.0]]
    grown = grow(plants)
    assert grown.action.startswith(f"the class grew from 2 to {2 + len(grown.added)} members")
    larger = plants.with_members(grown.added)
    assert len(larger.members) == 2 + len(grown.added)
    assert len(plants.members) == 2
    assert audit(larger, grown=grown.action).audit.actions[0] == grown.action
    everywhere = plants.family.grid(40)
    worst = {
        len(members): lg.gap(
            lg.policies.ModelBank(members.systems),
            everywhere,
            horizon=5,
            key=jax.random.key(7),
            ends=False,
        ).worst
        for members in (plants.members, larger.members)
    }
    assert worst[len(larger.members)] < worst[2] / FAR
    with time_budget(1e-9) as budget:
        assert grow(plants).added == []
    assert budget.is_cut
    held = GrownClass(added=grown.added[:1])
    assert grow(plants, held).added[:1] == held.added


def test_a_class_grows_where_its_bank_diverges_in_the_long_run(tmp_path, monkeypatch):
    """Short horizons show nothing: what is lost is asked for, and found at one place."""
    plants = plants_of(tmp_path, PUSHED.replace("1e-6", "1.0").replace("0.2, 4.0", "1.0, 1.2"))
    first = len(plants.members)

    def lost(_, policy, systems):
        bad = np.argmin(np.abs(np.asarray(systems.B).ravel() - 1.03))
        return (np.arange(len(systems.B)) == bad) * float(len(policy.log_prior) == first)

    monkeypatch.setattr(members_module, "share_lost", lost)
    grown = grow(plants)
    assert "the bank of the first diverges, that of all has a worst gap" in grown.action
    np.testing.assert_allclose(grown.added, [[1.03]], atol=0.01)


@pytest.mark.parametrize("grid", ["points = 2", "sample = 2", 'points = "auto"'])
def test_a_class_does_not_grow_where_the_study_says_how_large_it_is_or_nothing_is_missing(tmp_path, grid):
    plant = PUSHED if "auto" not in grid else PUSHED.replace("1e-6", "1.0").replace("0.2, 4.0", "1.0, 1.2")
    assert grow(plants_of(tmp_path, plant, f"[grid]\n{grid}")).added == []


@pytest.mark.slow
def test_a_servo_whose_coarse_bank_is_unstable_between_its_members_gets_a_class_that_holds(monkeypatch):
    monkeypatch.setattr(plants_module, "NUM_COARSE", 4)
    folder = pathlib.Path(__file__).parents[2] / "benchmarks" / "experiments"
    text = 'horizon = 100\n[plant]\npython = "practice:dc_servo"'
    plants = Plants(*parse_study(text, name="study.toml", folder=folder), trust=True)
    larger = plants.with_members(grow(plants).added)
    inside = plants.family.sample(64, key=jax.random.key(5))
    shares = [
        lg.gap(
            lg.policies.ModelBank(each.members.systems),
            inside,
            horizon=100,
            key=jax.random.key(6),
            num_rollouts=32,
            ends=False,
        ).share_diverged.max()
        for each in (plants, larger)
    ]
    assert shares[0] > 0.5
    assert shares[1] == 0
