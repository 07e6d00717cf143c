import json

import pytest

from lqgap.cli.certify import run_certify


@pytest.mark.slow
def test_the_bracket_is_printed(study, policy, capsys):
    run_certify(study, policy, rollouts=16, seed=None, trust=False, as_json=True)
    (bracket,) = json.loads(capsys.readouterr().out)
    assert bracket["lower"] > 0
    assert bracket["upper"] == "inf"
    assert "confidence" not in bracket
    assert "rollouts are too few" in bracket["doubt"]
    assert bracket["over"] == "ranges"
    assert bracket["worst"].startswith("sign = ")
    assert "it rests on the first " in bracket["reasons"][0]
    run_certify(study, policy, seed=None, trust=False, as_json=True)  # the study has few, this takes enough
    (bracket,) = json.loads(capsys.readouterr().out)
    assert "rollouts" not in bracket.get("doubt", "")
    run_certify(study, policy, seed=None, trust=False, as_json=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "no proof that no plant is worse" in printed


@pytest.mark.slow
def test_the_bracket_of_a_finite_class_is_over_it_and_says_nothing_of_ranges(tmp_path, policy, capsys):
    (tmp_path / "pair.py").write_text("import lqgap\npair = lambda: lqgap.plants.unknown_sign().grid(2)")
    study = tmp_path / "pair.toml"
    study.write_text('horizon = 4\n[plant]\npython = "pair:pair"\n[evaluation]\nrollouts = 16')
    for as_json in (True, False):
        run_certify(study, policy, seed=None, trust=True, as_json=as_json)
        printed = capsys.readouterr().out
        assert "range" not in printed
        assert "class" in printed
