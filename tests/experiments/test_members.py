import pytest

import lqgap as lg
from lqgap.experiments.members import audit
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.units import Workspace


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
