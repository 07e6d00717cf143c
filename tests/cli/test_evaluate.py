import json

import pytest

import lqgap as lg
from lqgap.cli.evaluate import run_evaluate

OPTIONS = dict(seed=None, trust=False)


def test_the_gap_on_every_real_plant_is_printed(study, policy, capsys):
    run_evaluate(study, policy, as_json=True, **OPTIONS)
    rows = json.loads(capsys.readouterr().out)
    assert [row["plant"] for row in rows] == ["real 1", "given 1"]
    assert all(row["gap"] > 0 and row["optimal_cost"] > 0 for row in rows)
    run_evaluate(study, policy, as_json=False, **OPTIONS)
    assert "given 1" in capsys.readouterr().out


def test_a_damaged_policy_is_named(study, tmp_path):
    (tmp_path / "damaged").write_bytes(b"x" * 100)
    with pytest.raises(lg.CorruptFileError, match="damaged"):
        run_evaluate(study, tmp_path / "damaged", as_json=False, **OPTIONS)


def test_margins_of_a_linear_policy_are_printed_and_of_others_there_are_none(study, policy, tmp_path, capsys):
    plant = lg.plants.unknown_sign().system({"sign": -1})
    linear = tmp_path / "linear.safetensors"
    optimal = lg.policies.StationaryLQG(plant)
    lg.save_policy(linear, optimal)
    run_evaluate(study, linear, as_json=True, **OPTIONS)
    rows = json.loads(capsys.readouterr().out)
    on_its_plant = {kind: float(value) for kind, value in lg.margins(optimal, plant).weakest_loops().items()}
    assert rows[1]["margins"] == pytest.approx(on_its_plant)
    run_evaluate(study, linear, as_json=False, **OPTIONS)
    assert "phase" in capsys.readouterr().out
    run_evaluate(study, policy, as_json=True, **OPTIONS)
    assert [row["margins"] for row in json.loads(capsys.readouterr().out)] == [None, None]


def test_a_delay_margin_is_printed_as_a_time_where_a_step_has_one(tmp_path, capsys):
    text = 'horizon = 4\n[plant]\nA = [["-pole"]]\nB = [[1]]\nC = [[1]]\nparameters = {pole = [1, 2]}\ndt = 0.5\n'
    study, linear = tmp_path / "timed.toml", tmp_path / "linear.safetensors"
    study.write_text(f"{text}[grid]\npoints = 2\n[real]\ncount = 1\n[evaluation]\nrollouts = 4\n")
    lg.save_policy(linear, lg.policies.LinearDynamic(Dc=[[-3.0]]))
    run_evaluate(study, linear, as_json=True, **OPTIONS)
    [row] = json.loads(capsys.readouterr().out)
    run_evaluate(study, linear, as_json=False, **OPTIONS)
    out = capsys.readouterr().out
    assert "delay in s, of which a step takes 0.5" in out
    assert f"{row['margins']['delay'] * 0.5:.4g}" in out
