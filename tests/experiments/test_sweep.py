import contextlib
import os
import pathlib
import signal
import sqlite3

import distributed
import pytest

import lqgap as lg
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.store import Store
from lqgap.experiments.sweep import Task, combine, measure, read_over, sweep
from lqgap.experiments.workers import Outcome

TINY = """
horizon = 5
[plant]
family = "unknown_sign"
[methods]
nominal = {}
bank = {}
vtr = {runs = 2}
oracle = {}
[real]
count = 2
[evaluation]
rollouts = 8
"""


@pytest.fixture
def tiny():
    return parse_study(TINY, name="tiny.toml", folder=pathlib.Path())


def test_values_are_read_as_toml_or_as_texts():
    over = read_over(
        ["horizon=5,10", "plant.gain=[1.0, 2.0],[0.5, 1.5]", "plant.family=unknown_sign,dc_motor", "x = true"]
    )
    assert over == {
        "horizon": [5, 10],
        "plant.gain": [[1.0, 2.0], [0.5, 1.5]],
        "plant.family": ["unknown_sign", "dc_motor"],
        "x": [True],
    }


@pytest.mark.parametrize("item", ["horizon", "=3", "horizon=", "a=1"])
def test_what_is_no_key_with_values_is_refused(item):
    with pytest.raises(lg.InvalidArgumentError, match="--over has"):
        read_over([item, "a=2"] if item == "a=1" else [item])


def test_every_combination_is_a_study(tiny):
    studies = combine(*tiny, {"horizon": [5, 7], "seed": [0, 1, 2], "methods.identify.probe": [3]})
    assert len(studies) == 6
    varied, study = studies[4]
    assert varied == {"horizon": 7, "seed": 1, "methods.identify.probe": 3}
    assert (study.horizon, study.seed, study.methods.identify.probe) == (7, 1, 3)
    assert study.methods.bank is not None


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({}, "varies something"),
        ({"horizon": []}, "0 studies"),
        ({"horizn": [1]}, "with horizn = 1: .*did you mean horizon"),
        ({"horizon": [5, 0]}, "with horizon = 0: "),
        ({"horizon.x": [5]}, "horizon is a value"),
        ({"seed": range(400), "horizon": range(1, 400)}, "159600 studies"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused_before_it_begins(tiny, over, says):
    with pytest.raises(lg.InvalidArgumentError, match=says):
        combine(*tiny, over)


def test_a_row_that_cannot_be_kept_is_shown_and_computed_again(tiny, tmp_path, monkeypatch):
    estimate = {"mean": 1.0, "stderr": 0.1}
    row = {"worst_real": estimate, "mean_real": estimate, "optimal_cost_real": 2.0}
    gaps = {"bank": row | {"worst_box": None, "worst_class": None}}

    def compute(_, tasks, **__):
        yield from (Outcome(index, (gaps, {}, 0.1), None) for index in range(len(tasks)))

    def fail(*_):
        raise lg.StorageError("the disk is full")

    monkeypatch.setattr("lqgap.experiments.sweep.run_all", compute)
    with monkeypatch.context() as full:
        full.setattr(Store, "put", fail)
        rows = sweep(*tiny, tmp_path, over={"seed": [0, 1]})
    assert [(list(row.methods), row.error) for row in rows] == [(["bank"], "the disk is full")] * 2
    counted = []
    again = sweep(*tiny, tmp_path, over={"seed": [0, 1]}, progress=lambda *done: counted.append(done))
    assert counted == [(1, 2), (2, 2)]
    assert [row.error for row in again] == [None, None]


@pytest.mark.slow
def test_a_row_has_the_gaps_of_every_method(tiny):
    study, _ = tiny
    rows, files = measure(Task(study.model_dump(exclude_none=True), ".", "tiny.toml", False, "nowhere"))
    assert files == {}
    assert list(rows) == ["nominal", "bank", "vtr", "oracle"]
    assert rows["oracle"]["worst_real"]["mean"] == 0
    nominal = {name: row["mean"] for name, row in rows["nominal"].items() if isinstance(row, dict)}
    assert nominal["worst_class"] >= nominal["worst_real"] >= nominal["mean_real"] > 0
    assert nominal["worst_box"] >= nominal["worst_class"]
    assert rows["nominal"]["worst_real"]["stderr"] > 0


@pytest.mark.slow
def test_processes_and_a_cluster_find_the_same_and_failures_stay_rows(tiny, tmp_path):
    from distributed import Client, LocalCluster  # noqa: PLC0415

    over = {"seed": [0, 1], "plant.family": ["unknown_sign", "no_such_family"]}
    local = sweep(*tiny, tmp_path / "local", over=over, workers=2)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        remote = sweep(*tiny, tmp_path / "remote", over=over, workers=client)
    assert local == remote
    assert [row.error is None for row in local] == [True, False, True, False]
    assert "there is no family 'no_such_family'" in local[1].error
    assert local[0].methods != local[2].methods
    # A second sweep computes what failed, and nothing else.
    counted = []
    again = sweep(
        *tiny, tmp_path / "local", over=over, workers=2, progress=lambda done, total: counted.append(done)
    )
    assert again == local
    assert counted == [3, 4]
    with contextlib.closing(sqlite3.connect(tmp_path / "local" / "store.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM units").fetchone() == (4,)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_of_a_cluster_that_is_killed_costs_only_its_unit(tmp_path):
    """Three times a worker is killed at work; the table is that of processes which nobody kills."""
    study, source = parse_study(TINY.replace("vtr = {runs = 2}\n", ""), name="t.toml", folder=tmp_path)
    over = {"seed": list(range(8))}
    calm = sweep(study, source, tmp_path / "calm", over=over)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as cluster:
        killed = []

        def kill(done, _):
            if done in (1, 3, 5):
                victim = next(iter(cluster.workers.values())).pid
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        with distributed.Client(cluster) as client:
            harsh = sweep(study, source, tmp_path / "harsh", over=over, workers=client, progress=kill)
    assert len(set(killed)) == 3
    assert harsh == calm
    assert all(row.error is None for row in harsh)
