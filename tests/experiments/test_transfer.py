import os
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments import store
from lqgap.experiments.parsing import parse_study
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
            policy = lg.load_policy(folder / method.policy_file)
            assert policy.num_inputs == 1
            assert policy.horizon is None  # it goes on


def test_a_finished_run_is_read_back_without_computing(small, finished):
    folder, record = finished
    seen = []
    assert transfer(*small, folder, progress=lambda name, seconds, _: seen.append(name)) == record
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
    computed, told = [], []
    again = transfer(
        *small,
        copy,
        progress=lambda name, seconds, _: computed.append(name) if seconds is None else None,
        notice=told.append,
    )
    assert {"horizons bank", "gaps robust"} <= set(computed)
    assert {name.split()[0] for name in computed} == {"train", "horizons", "gaps"}
    assert len(told) == 7  # a policy of each method but the reference
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
        progress=lambda name, seconds, _: computed.append(name) if seconds is None else None,
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
        exact = float(lg.exact_gap(policy, truth, horizon=8, ends=False))
        assert abs(exact - estimate.mean) < 5 * estimate.stderr
        value = float(lg.solve_finite(truth, horizon=8, ends=False).value)
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


def test_damage_of_a_store_is_an_error_and_nothing_is_deleted(small, finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished[0], copy)
    path = copy / "store.sqlite"
    damaged = path.read_bytes()[:700]
    path.write_bytes(damaged)
    before = sorted(os.listdir(copy))
    with pytest.raises(lg.CorruptFileError, match=path.name):
        transfer(*small, copy)
    assert path.read_bytes() == damaged
    assert set(before) <= set(os.listdir(copy))


@pytest.mark.parametrize("what", ["missing", "damaged", "swapped"])
def test_a_policy_that_is_not_the_one_that_was_judged_is_made_again(small, finished, tmp_path, what):
    folder, record = finished
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    path = copy / record.method("robust").policy_file
    right = path.read_bytes()
    if what == "swapped":
        shutil.copy(copy / record.method("nominal").policy_file, path)
    else:
        path.write_bytes(right[:700]) if what == "damaged" else path.unlink()
    told = []
    assert same(transfer(*small, copy, notice=told.append), record)
    assert path.read_bytes() == right
    assert told == [
        f"{path} {'is missing' if what == 'missing' else 'is not the policy that was made for this study'}: it "
        f"is made again"
    ]


def test_an_edited_title_is_shown(small, finished):
    study, source = small
    folder, record = finished
    renamed = transfer(study.model_copy(update={"title": "New"}), source, folder)
    assert (renamed.title, load_record(folder).title) == ("New", "New")
    assert 'title = "New"' in (folder / "study.toml").read_text()
    assert transfer(study, source, folder) == record


def test_a_finished_run_is_shown_where_nothing_can_be_written(small, finished, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr("lqgap.experiments.transfer.write_if_changed", lambda *_: pytest.fail("written"))
    assert transfer(*small, finished[0]) == finished[1]


TINY = """
horizon = 3
[plant]
python = "module_of_this_test:make"
[methods]
bank = {}
[real]
count = 1
[evaluation]
rollouts = 4
horizons = []
trajectories = 0
"""


def write_module(folder, low):
    (folder / "helper_of_this_test.py").write_text(f"LOW = {low}")
    (folder / "module_of_this_test.py").write_text(
        "import lqgap as lg\nfrom helper_of_this_test import LOW\ndef make():\n    return "
        'lg.simulators.ParameterBox(lambda a: lg.LQG([[a]], [[1.0]], [[1.0]]), {"a": (LOW, 0.9)})'
    )


def test_an_edited_helper_is_noticed_and_a_finished_run_needs_no_trust(tmp_path):
    study = parse_study(TINY, name="study.toml", folder=tmp_path)
    folder, told = tmp_path / "out", []
    write_module(tmp_path, 0.3)
    first = transfer(*study, folder, trust=True)
    assert transfer(*study, folder, notice=told.append) == first
    assert told == []
    (folder / first.method("bank").policy_file).unlink()
    assert transfer(*study, folder, notice=told.append) == first
    assert told.pop().endswith("is missing or was changed")
    write_module(tmp_path, 0.4)
    with pytest.raises(lg.InvalidStudyError, match="--trust"):
        transfer(*study, folder, notice=told.append)
    assert told.pop().endswith(
        "helper_of_this_test.py has changed since the study was computed: it is computed again"
    )
    second = transfer(*study, folder, trust=True, notice=told.append)
    assert second.parameters[0].low == 0.4
    write_module(tmp_path, 0.3)
    assert (
        transfer(*study, folder, trust=True, notice=told.append).without_timings() == first.without_timings()
    )


def test_results_of_other_code_are_kept_and_not_used(tmp_path, monkeypatch):
    text = TINY.replace('python = "module_of_this_test:make"', 'family = "unknown_sign"')
    study = parse_study(text, name="study.toml", folder=tmp_path)
    told, computed = [], []
    monkeypatch.setattr(store, "code_hash", lambda: "older")
    first = transfer(*study, tmp_path, notice=told.append)
    monkeypatch.undo()
    again = transfer(
        *study, tmp_path, notice=told.append, progress=lambda name, seconds, _: computed.append(name)
    )
    assert same(first.model_copy(update={"methods": again.methods}), again)  # names of policy files differ
    assert "audit" in computed
    assert told == [
        f"{tmp_path / 'store.sqlite'} has results of another version of lqgap, which are kept, not used"
    ]


def test_a_place_that_cannot_be_written_is_refused_before_any_work(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(lg.InvalidArgumentError, match="file"):
        transfer(*small, tmp_path / "file", progress=lambda name, seconds, _: pytest.fail(name))
