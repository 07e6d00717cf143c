import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.robustness import least_margins
from lqgap.experiments.units import Workspace
from lqgap.policies import ModelBank, StationaryLQG

STUDY = """
horizon = 5
[plant]
A = [["pole"]]
B = [[1.0]]
C = [[1.0]]
parameters = {pole = [0.5, 1.1]}
[grid]
points = 2
[real]
plants = [{pole = 1.05}]
"""


@pytest.fixture
def workspace(tmp_path):
    study, source = parse_study(STUDY, name="study.toml", folder=tmp_path)
    plants = Plants(study, source, trust=False)
    return Workspace(plants, range(len(plants.members)), tmp_path)


def test_every_kind_of_margin_names_the_plant_of_the_class_or_the_real_one_where_it_is_least(workspace):
    policy = StationaryLQG(workspace.members[0])
    found = {margin.kind: margin for margin in least_margins(workspace, policy)}
    plants = [*workspace.members, *lg.Finite(workspace.plants.real.systems)]
    phases = [float(lg.margins(policy, plant).phase[0]) for plant in plants]
    np.testing.assert_allclose(found["phase"].value, min(phases))
    assert found["disk"].plant == "pole = 1.1"
    assert set(found) == set(vars(lg.margins(policy, plants[0])))


def test_a_bank_has_no_margins(workspace):
    assert least_margins(workspace, ModelBank(workspace.members.systems)) == []
