"""Runs in processes of their own, killed without warning, again and again: they end as if nothing had happened."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

NUM_KILLS = 10
TINY = """
horizon = 5
[plant]
family = "unknown_sign"
[methods]
nominal = {}
bank = {}
robust = {steps = 40}
[real]
count = 2
[evaluation]
rollouts = 8
horizons = [3, 5]
trajectories = 1
"""


def start(arguments, cache):
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "lqgap", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(arguments, cache):
    process = start(arguments, cache)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err.decode()
    return out


def kill_often(command, where, *, seconds):
    """Kill runs in a folder until one comes to its end, then in the next; returns the folders, all finished."""
    rng = random.Random(0)  # noqa: S311
    folders = [where / "cut 0"]
    for _ in range(NUM_KILLS):
        process = start([*command, folders[-1]], where)
        while True:
            try:
                process.communicate(timeout=rng.uniform(0.2, seconds))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                break
            folders.append(where / f"cut {len(folders)}")
            process = start([*command, folders[-1]], where)
    return [(folder, finish([*command, folder], where)) for folder in folders]


def rows(folder):
    connection = sqlite3.connect(folder / "store.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    found = connection.execute("SELECT key, name, result, error FROM units ORDER BY key").fetchall()
    connection.close()
    return [row for row in found if row[1] != "record"]  # which has timings


def without_timings(text):
    return {**json.loads(text), "timings": None}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_transfer_killed_at_random_moments_ends_the_same(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(TINY)
    command = ["transfer", study, "--json", "-o"]
    whole = finish([*command, tmp_path / "whole"], tmp_path)
    begin = time.monotonic()
    finish([*command, tmp_path / "warm"], tmp_path)
    seconds = time.monotonic() - begin
    for folder, cut in kill_often(command, tmp_path, seconds=seconds):
        assert without_timings(cut) == without_timings(whole)
        assert rows(folder) == rows(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sweep_of_four_processes_killed_at_random_moments_ends_the_same(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(TINY.replace("robust = {steps = 40}\n", ""))
    command = [
        "sweep",
        study,
        "--json",
        "--processes",
        4,
        "--over",
        f"seed={','.join(map(str, range(12)))}",
        "-o",
    ]
    begin = time.monotonic()
    whole = finish([*command, tmp_path / "whole"], tmp_path)
    seconds = time.monotonic() - begin
    for folder, cut in kill_often(command, tmp_path, seconds=seconds):
        assert json.loads(cut) == json.loads(whole)
        assert rows(folder) == rows(tmp_path / "whole")
        assert len(rows(folder)) == 12


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_interrupted_sweep_ends_cleanly_and_keeps_what_it_has(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(TINY.replace("robust = {steps = 40}\n", ""))
    command = [
        "sweep",
        study,
        "-v",
        "--processes",
        2,
        "--over",
        f"seed={','.join(map(str, range(200)))}",
        "-o",
    ]
    process = start([*command, tmp_path / "out"], tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"done 1 of 200")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert len(rows(tmp_path / "out")) >= 1
