import json

import pytest

import lqgap as lg
from lqgap.cli.stages import run_adapt, run_certify, run_evaluate, run_train

TINY = """
horizon = 4
[plant]
family = "unknown_sign"
[methods]
bank = {}
robust = {policy = "bank", steps = 2}
[real]
count = 1
plants = [{sign = -1}]
[evaluation]
rollouts = 16
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    return path


@pytest.mark.slow
def test_a_policy_goes_from_stage_to_stage(study, tmp_path, capsys):
    options = dict(seed=None, trust=False)
    policy = tmp_path / "robust.safetensors"
    run_train(study, policy, method="robust", **options)
    run_evaluate(study, policy, as_json=True, **options)
    rows = json.loads(capsys.readouterr().out)
    assert [row["plant"] for row in rows] == ["real 1", "given 1"]
    assert all(row["gap"] > 0 and row["optimal_cost"] > 0 for row in rows)
    run_certify(study, policy, as_json=True, **options)
    (bracket,) = json.loads(capsys.readouterr().out)
    assert 0 < bracket["lower"] <= bracket["upper"]
    run_evaluate(study, policy, as_json=False, **options)
    assert "given 1" in capsys.readouterr().out


def test_methods_and_files_that_are_not_there_are_named(study, tmp_path):
    options = dict(seed=None, trust=False)
    with pytest.raises(lg.InvalidArgumentError, match="no method 'magic', only bank, robust"):
        run_train(study, tmp_path / "p", method="magic", **options)
    (tmp_path / "damaged").write_bytes(b"x" * 100)
    with pytest.raises(lg.CorruptFileError, match="damaged"):
        run_evaluate(study, tmp_path / "damaged", as_json=False, **options)


@pytest.mark.slow
def test_adaptation_tells_what_it_did(study, capsys):
    run_adapt(study, seed=None, steps=200, trust=False, as_json=True)
    (told,) = json.loads(capsys.readouterr().out)
    assert told["plant"] == "real 1"
    assert told["end"]["step"] == 200
    assert all(row["members left"] in (1, 2) for row in told["switches"])
    run_adapt(study, seed=None, steps=200, trust=False, as_json=False)
    assert "At the end of LQG-VTR on real 1" in capsys.readouterr().out
