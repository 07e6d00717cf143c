import json

import pytest

import lqgap as lg
from lqgap.cli.session import Progress
from lqgap.cli.sweep import Where, run_sweep

TINY = """
horizon = 4
[plant]
family = "unknown_sign"
[methods]
oracle = {}
[real]
count = 1
[evaluation]
rollouts = 4
"""
OPTIONS = dict(trust=False, progress=Progress(verbose=False, quiet=True))


@pytest.mark.slow
def test_a_sweep_prints_a_row_for_every_study(tmp_path, capsys):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    where = Where(processes=1, scheduler=None, dask_local=False)
    over = ["seed=0,1", "plant.family=unknown_sign,[no]"]
    with pytest.raises(lg.NotConvergedError, match="2 of 4 studies failed"):
        run_sweep(path, tmp_path / "out", over=over, where=where, as_json=True, **OPTIONS)
    rows = json.loads(capsys.readouterr().out)
    assert [row["varied"]["seed"] for row in rows] == [0, 0, 1, 1]
    assert rows[0]["methods"]["oracle"]["worst_real"]["mean"] == 0
    with pytest.raises(lg.NotConvergedError):
        run_sweep(path, tmp_path / "out", over=over, where=where, as_json=False, **OPTIONS)
    out = capsys.readouterr().out
    assert "Gaps of the sweep" in out
    assert "failed" in out


def test_a_scheduler_that_is_not_there_is_named(tmp_path):
    where = Where(processes=1, scheduler="nonsense://nowhere", dask_local=False)
    with pytest.raises(lg.InvalidArgumentError, match="no Dask scheduler at nonsense"):
        run_sweep(None, tmp_path, over=["seed=0"], where=where, as_json=False, **OPTIONS)


def test_a_function_is_not_imported_without_trust_and_no_worker_starts(tmp_path, monkeypatch):
    path = tmp_path / "study.toml"
    path.write_text('[plant]\npython = "os:getcwd"\n')
    monkeypatch.setattr("lqgap.experiments.sweep.run_all", lambda *_, **__: pytest.fail("workers start"))
    where = Where(processes=1, scheduler=None, dask_local=False)
    with pytest.raises(lg.InvalidStudyError, match=r"line 2: plant.python: .* read it, then add --trust"):
        run_sweep(path, tmp_path / "out", over=["seed=0,1"], where=where, as_json=True, **OPTIONS)
    assert not (tmp_path / "out").exists()
