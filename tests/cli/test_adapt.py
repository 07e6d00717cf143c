import json

import pytest

from lqgap.cli.adapt import run_adapt


@pytest.mark.slow
def test_adaptation_tells_what_it_did(study, capsys):
    run_adapt(study, seed=None, steps=200, trust=False, as_json=True)
    (told,) = json.loads(capsys.readouterr().out)
    assert told["plant"] == "real 1"
    assert told["end"]["step"] == 200
    assert all(row["members left"] in (1, 2) for row in told["switches"])
    run_adapt(study, seed=None, steps=200, trust=False, as_json=False)
    assert "At the end of LQG-VTR on real 1" in capsys.readouterr().out
