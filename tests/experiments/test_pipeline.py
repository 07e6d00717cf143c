import pathlib

import pytest

from lqgap.experiments.parsing import parse_study
from lqgap.experiments.pipeline import judge_methods, judge_plants, run_audit
from lqgap.experiments.plants import Plants
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
    assert len(judge_plants(work, workspace).real) == 2
    contenders = list(judge_methods(work, workspace))
    assert [each.name for each in contenders] == ["bank", "oracle"]
    assert [each.judged.gaps.method for each in contenders] == ["bank", "oracle"]
    assert contenders[0].policy_fn() is contenders[0].policy_fn()
    assert contenders[1].judged.gaps.real_worst.mean == 0
    assert work.warnings[0].startswith("linear is left out: ")
    assert set(work.timings) == {"audit", "optimum", "train linear", "train bank", "gaps bank", "gaps oracle"}
