import os
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.record import Record
from lqgap.experiments.transfer import load_record, transfer

pytestmark = pytest.mark.slow  # all need a run


def same(one: Record, other: Record) -> bool:
    return one.without_timings().model_dump_json() == other.without_timings().model_dump_json()


def test_a_run_leaves_its_record_its_study_and_its_policies(small, finished):
    folder, record = finished
    assert load_record(folder) == record
    assert (folder / "study.toml").read_text() == small[0].to_toml() == record.study
    for method in record.methods:
        if method.kind not in ("adaptive", "reference"):
            assert lg.load_policy(folder / method.policy_file).num_inputs == 1


def test_a_finished_run_is_read_back_without_computing(small, finished):
    folder, record = finished
    seen = []
    assert transfer(*small, folder, progress=lambda name, seconds: seen.append(name)) == record
    assert seen == []


def test_a_finished_run_is_read_back_without_jax(finished):
    folder, record = finished
    code = (
        "import pathlib, sys\n"
        "from lqgap.experiments.parsing import read_study\n"
        "from lqgap.experiments.transfer import transfer\n"
        "record = transfer(*read_study(sys.argv[1] + '/study.toml'), sys.argv[1])\n"
        "assert 'jax' not in sys.modules and 'numpy' not in sys.modules\n"
        "print(record.recommended)"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == record.recommended


def test_what_is_missing_is_computed_again_to_the_same_end(small, finished, tmp_path):
    """A folder that has all rows but the last, and lost its policies."""
    folder, record = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "policies")
    connection = sqlite3.connect(copy / "store.sqlite")
    connection.execute("DELETE FROM units WHERE name IN ('record', 'gaps robust', 'horizons bank')")
    connection.commit()
    connection.close()
    computed = []
    again = transfer(
        *small, copy, progress=lambda name, seconds: computed.append(name) if seconds is None else None
    )
    assert computed == ["horizons bank", "gaps robust"]
    assert same(again, record)


def test_a_changed_study_does_not_take_stale_rows(small, finished):
    study, source = small
    folder, record = finished
    computed = []
    changed = study.model_copy(
        update={
            "seed": 1,
            "methods": study.methods.model_copy(update=dict.fromkeys(("robust", "randomized", "linear"))),
        }
    )
    other = transfer(
        changed,
        source,
        folder,
        progress=lambda name, seconds: computed.append(name) if seconds is None else None,
    )
    assert "gaps bank" in computed
    assert other.gaps.methods[0] != record.gaps.methods[0]
    assert transfer(study, source, folder) == record
    assert load_record(folder) == record


def test_the_record_agrees_with_the_library(finished):
    """The gap of the nominal controller on a real plant, exactly (S15): within five standard errors."""
    folder, record = finished
    policy = lg.load_policy(folder / record.method("nominal").policy_file)
    family = lg.plants.mass_spring_damper()
    gaps = next(part for part in record.gaps.methods if part.method == "nominal")
    for plant, estimate in list(zip(record.real, gaps.real, strict=True))[:2]:
        truth = family.system(plant.parameters)
        exact = float(lg.exact_gap(policy, truth, horizon=8))
        assert abs(exact - estimate.mean) < 5 * estimate.stderr
        value = float(lg.solve_finite(truth, horizon=8).value)
        np.testing.assert_allclose(plant.optimal_cost, value, rtol=1e-9)


def test_damage_of_a_record_is_noticed(finished, tmp_path):
    folder, _ = finished
    with pytest.raises(lg.InvalidArgumentError, match="cannot be read"):
        load_record(tmp_path)
    text = (folder / "record.json").read_text()
    for damaged in (text[:1000], text.replace('"seed"', '"sed"', 1), "[]", "\x00"):
        (tmp_path / "record.json").write_text(damaged)
        with pytest.raises(lg.CorruptFileError, match=r"record\.json"):
            load_record(tmp_path)


@pytest.mark.parametrize("what", ["store.sqlite", "policy"])
def test_damage_of_a_run_is_an_error_and_nothing_is_deleted(small, finished, tmp_path, what):
    folder, record = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    if what == "policy":
        connection = sqlite3.connect(copy / "store.sqlite")
        connection.execute("DELETE FROM units WHERE name IN ('record', 'gaps robust')")
        connection.commit()
        connection.close()
        path = copy / record.method("robust").policy_file
    else:
        path = copy / what
    damaged = path.read_bytes()[:700]
    path.write_bytes(damaged)
    before = sorted(os.listdir(copy))
    with pytest.raises(lg.CorruptFileError, match=path.name):
        transfer(*small, copy)
    assert path.read_bytes() == damaged
    assert set(before) <= set(os.listdir(copy))
