import pathlib

import pytest

import lqgap as lg
from lqgap.experiments import bounds, units
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.pipeline import _bounds, judge_methods, judge_plants, run_audit
from lqgap.experiments.plants import Plants
from lqgap.experiments.results import Theory
from lqgap.experiments.transfer import transfer
from lqgap.experiments.work import Work

TINY = """
horizon = 3
[plant]
family = "unknown_sign"
[methods]
linear = {}
bank = {}
oracle = {}
[real]
count = 2
[evaluation]
rollouts = 4
"""


@pytest.mark.slow
def test_gaps_can_be_asked_for_alone_and_a_method_that_cannot_be_made_is_left_out(tmp_path):
    """No linear controller stabilises both signs."""
    study, source = parse_study(
        TINY.replace('"unknown_sign"', '"unknown_sign"\npole = 1.2'), name="tiny.toml", folder=pathlib.Path()
    )
    work = Work(Plants(study, source, trust=False))
    workspace, audited = run_audit(work, tmp_path)
    assert audited.kept == [0, 1]
    plants = judge_plants(work, workspace)
    assert len(plants.real) == 2
    contenders = list(judge_methods(work, workspace, plants))
    assert [each.name for each in contenders] == ["bank", "oracle"]
    assert [each.judged.gaps.method for each in contenders] == ["bank", "oracle"]
    assert contenders[0].policy_fn() is contenders[0].policy_fn()
    assert contenders[1].judged.gaps.real_worst.mean == 0
    assert work.left_out.keys() == {"linear"}
    assert "stabilises all 2 members" in work.left_out["linear"]
    assert set(work.timings) == {"class", "audit", "optimum", "train bank", "gaps bank", "gaps oracle"}


SIGN = """
horizon = 6
[plant]
A = [[1.25]]
B = [["push"]]
C = [[1.0]]
parameters = {push = [-1.0, 1.0]}
[grid]
points = 2
[real]
count = 0
plants = [{push = 0.8}]
[evaluation]
rollouts = 8
horizons = []
trajectories = 0
"""


@pytest.mark.slow
def test_a_method_that_fails_leaves_the_others_unharmed_and_none_left_is_an_error(tmp_path):
    """The middle cannot be moved, and no linear controller holds both signs."""
    table = "[methods]\nnominal = {}\nlinear = {}\n"
    record = transfer(*parse_study(SIGN + table + "bank = {}", name="sign", folder=tmp_path), tmp_path)
    assert [method.name for method in record.methods] == ["bank"]
    assert [each.name for each in record.left_out] == ["nominal", "linear"]
    assert "push = 0" in record.left_out[0].reason
    assert record.warnings[-1] == f"Robust linear controller is left out: {record.left_out[-1].reason}"
    with pytest.raises(lg.NotConvergedError, match="no method is left: nominal: the plant in the middle"):
        transfer(*parse_study(SIGN + table, name="sign", folder=tmp_path), tmp_path)


@pytest.mark.parametrize("error", [lg.NotConvergedError("reason"), KeyError(3)])
def test_a_lower_bound_that_fails_is_left_out_with_the_reason(tmp_path, monkeypatch, error):
    def fail(_):
        raise error

    monkeypatch.setattr(bounds, "lower_bound", fail)
    monkeypatch.setattr(bounds, "theory_bounds", lambda _: Theory())
    work = Work(Plants(*parse_study(TINY, name="tiny.toml", folder=tmp_path), trust=False))
    begun: list[int] = []
    lower, _ = _bounds(work, units.Workspace(work.plants, [0, 1], tmp_path), lambda: begun.append(1))
    assert begun == [1]
    assert lower is None
    assert work.warnings[0].startswith("there is no lower bound: ")
    assert str(error) in work.warnings[0]
