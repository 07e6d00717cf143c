import json

import pytest

import lqgap as lg
from lqgap.cli.adapt import run_adapt

OPTIONS = dict(seed=None, steps=200, trust=False)


@pytest.mark.slow
def test_adaptation_tells_what_it_did(study, capsys):
    run_adapt(study, method="vtr", as_json=True, **OPTIONS)
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["plant"], told["method"]) == ("real 1", "vtr")
    assert told["end"]["step"] == 200
    assert all(row["members left"] in (1, 2) for row in told["switches"])
    assert all(row["acts on"].startswith("sign = ") for row in told["switches"])
    run_adapt(study, method="vtr", as_json=False, **OPTIONS)
    assert "At the end of LQG-VTR on real 1" in capsys.readouterr().out


@pytest.mark.slow
def test_any_method_can_be_run_with_or_without_sets_of_members(study, capsys):
    run_adapt(study, method="bank", as_json=True, **OPTIONS)
    (of_bank,) = json.loads(capsys.readouterr().out)
    assert of_bank["end"].keys() == {"step", "regret"}
    assert of_bank["switches"] == of_bank["events"] == []
    run_adapt(study, method="oracle", as_json=True, **OPTIONS)
    (of_oracle,) = json.loads(capsys.readouterr().out)
    assert of_oracle["end"]["regret"] < of_bank["end"]["regret"]


def test_a_method_that_there_is_not_is_refused_before_any_work(study):
    with pytest.raises(lg.InvalidArgumentError, match="no method 'vrt'; did you mean vtr"):
        run_adapt(study, method="vrt", as_json=False, **OPTIONS)
