import types

import pytest

import lqgap as lg
from lqgap.experiments import bounds
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.results import Theory
from lqgap.experiments.units import Workspace


def plants_of(tmp_path, plant, more=""):
    study, source = parse_study(f"horizon = 5\n[plant]\n{plant}\n{more}", name="study.toml", folder=tmp_path)
    return Plants(study, source, trust=False)


def test_corners_are_extreme_members_and_few():
    family = lg.plants.mass_spring_damper()
    assert bounds._corners(family.grid(3)) == [0, 2, 6, 8]
    assert len(bounds._corners(lg.plants.mass_spring_damper(mass=(1, 2)).grid(2))) == 4
    members = family.grid(3).subset([1, 3, 4])
    assert len(bounds._corners(members)) > 1
    assert bounds._corners(members.subset([0])) == [0]


WIDE = 'A = [["a", 0.0], [0.0, 1.02]]\nB = [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]\nC = [[1.0, 1.0]]\nparameters = {a = [0, 0.5]}'


def test_one_horizon_and_no_bound_of_two_steps_is_the_bound_of_the_study(tmp_path):
    plants = plants_of(tmp_path, WIDE, "[grid]\npoints = 2\n[evaluation]\nhorizons = [1]")
    plants = Plants(plants.study.model_copy(update={"ends": True}), plants.source, trust=False)
    bound = bounds.lower_bound(Workspace(plants, [0, 1], tmp_path))
    assert bound.series.horizons == [5]
    assert [value.mean for value in bound.series.values] == [bound.value]


SCALAR = 'A = [["pole"]]\nB = [[1.0]]\nC = [[1.0]]\nparameters = {pole = [0.5, 0.95]}'


@pytest.fixture
def stand_in(monkeypatch):
    """A bound over ranges that grows with the horizon; the horizons that it was asked for."""
    asked = []

    def find(_, *, horizon, ends):
        asked.append(horizon)
        reasons = ("it goes on",) if not ends else ("it ends",)
        return types.SimpleNamespace(
            value=float(horizon), kind="stand-in", spread=0.0, confidence=0.99, prior="any", reasons=reasons
        )

    monkeypatch.setattr("lqgap.theory.lower_bounds.ranges.BOUNDS", {"stand-in": find})
    monkeypatch.setattr(bounds, "is_small", lambda *_, **__: False)  # of members, the kind that is fastest
    return asked


@pytest.mark.parametrize("ends", [True, False])
def test_a_bound_of_the_ranges_is_that_of_the_study_s_horizon(tmp_path, stand_in, ends):
    """In a task that goes on it holds for all longer ones."""
    plants = plants_of(tmp_path, SCALAR, "[grid]\npoints = 2\n[evaluation]\nhorizons = [2, 3, 4, 9]")
    plants = Plants(plants.study.model_copy(update={"ends": ends}), plants.source, trust=False)
    bound = bounds.lower_bound(Workspace(plants, [0, 1], tmp_path))
    assert (bound.value, bound.kind, bound.over, bound.confidence) == (5.0, "stand-in", "ranges", 0.99)
    assert (bound.set_by, bound.reasons) == (["any"], ["it ends" if ends else "it goes on"])
    assert not bound.bounds_class
    assert stand_in == [5]
    values = dict(zip(bound.series.horizons, (value.mean for value in bound.series.values), strict=True))
    assert values == ({5: 5.0} if ends else {5: 5.0, 9: 5.0})


def test_a_finite_class_inherits_nothing_from_a_bound_of_ranges(tmp_path, stand_in):
    plants = plants_of(tmp_path, SCALAR, "[grid]\npoints = 2\n[evaluation]\nhorizons = [2, 5]")
    plants.__dict__["family"] = plants.members
    bound = bounds.lower_bound(Workspace(plants, [0, 1], tmp_path))
    assert (bound.over, bound.bounds_class, bound.confidence, stand_in) == ("class", True, 1.0, [])
    assert 0 < bound.value < 1
    assert all(value.mean < 1 for value in bound.series.values)


UNSTABLE = 'A = [[1.1]]\nB = [["push"]]\nC = [[1.0]]\nparameters = {push = [1.0, 2.0]}'


@pytest.mark.slow
def test_bounds_of_a_class_that_is_not_stable_are_vacuous(tmp_path):
    workspace = Workspace(plants_of(tmp_path, UNSTABLE, "[grid]\npoints = 2"), [0, 1], tmp_path)
    sheet = bounds.theory_bounds(workspace).sheet
    assert all(sheet.vacuous.values())
    assert "assumptions fail" in [row.name for row in sheet.rows]


def test_where_there_are_no_bounds_it_says_why(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise lg.NotConvergedError("reason")

    monkeypatch.setattr(bounds, "bounds", fail)
    workspace = Workspace(plants_of(tmp_path, UNSTABLE, "[grid]\npoints = 2"), [0, 1], tmp_path)
    assert bounds.theory_bounds(workspace) == Theory(missing="reason")
