import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

import lqgap as lg
from lqgap.experiments import store
from lqgap.experiments.provenance import checksum
from lqgap.experiments.store import Finished, Store, Unit, key_of

UNIT = Unit("train robust", {"steps": 3, "range": [0.5, 4.0]}, seed=1)


def rows_of(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM units ORDER BY name, key")]


def test_a_result_comes_back_as_it_was(tmp_path):
    kept = Store(tmp_path / "deep" / "store.sqlite")
    assert kept.get(UNIT) is None
    kept.put(UNIT, Finished({"gap": [0.1, 1 / 3]}, None, 2.5))
    assert Store(kept.path).get(UNIT) == Finished({"gap": [0.1, 1 / 3]}, None, 2.5)
    (row,) = rows_of(kept.path)
    assert (row["name"], row["seed"], row["precision"]) == ("train robust", 1, "float64")


@pytest.mark.parametrize(
    "other",
    [
        Unit("train", UNIT.configuration, 1),
        Unit(UNIT.name, {"steps": 4, "range": [0.5, 4.0]}, 1),
        Unit(UNIT.name, {"steps": 3, "range": [0.5, 4.1]}, 1),
        Unit(UNIT.name, UNIT.configuration, 2),
        Unit(UNIT.name, UNIT.configuration, 1, {"helper.py": "123"}),
    ],
)
def test_whatever_may_change_a_result_changes_the_key(other):
    assert other.key != UNIT.key


def test_other_code_has_other_keys_and_its_results_stay(tmp_path, monkeypatch):
    path = tmp_path / "store.sqlite"
    assert not Store(path).has_other_code()
    Store(path).put(UNIT, Finished(1, None, 0.0))
    assert not Store(path).has_other_code()
    monkeypatch.setattr(store, "code_hash", lambda: "other")
    assert Store(path).get(UNIT) is None
    assert Store(path).has_other_code()
    Store(path).put(UNIT, Finished(2, None, 0.0))
    assert len(rows_of(path)) == 2
    monkeypatch.undo()
    assert Store(path).get(UNIT) == Finished(1, None, 0.0)


def test_a_result_is_found_while_its_files_are_the_same(tmp_path):
    kept, helper = Store(tmp_path / "store.sqlite"), tmp_path / "helper.py"
    assert kept.find(UNIT, tmp_path) == (None, None)
    units = []
    for text in ("one", "two"):
        helper.write_text(text)
        units.append(replace(UNIT, files={"helper.py": checksum(helper)}))
        kept.put(units[-1], Finished(text, None, 0.0))
        assert kept.find(UNIT, tmp_path) == (units[-1], None)
    helper.write_text("three")
    assert kept.find(UNIT, tmp_path) == (None, "helper.py")
    kept.put(UNIT, Finished(None, "it failed", 0.0))
    assert kept.find(UNIT, tmp_path) == (None, "helper.py")
    helper.write_text("one")
    assert kept.find(UNIT, tmp_path) == (units[0], None)
    kept.put(units[0], Finished("again", None, 0.0))
    assert kept.get(units[0]).result == "one"
    assert kept.get(UNIT) is None  # the failure is forgotten
    kept.put(units[0], Finished("again", None, 0.0), replace=True)
    assert kept.get(units[0]).result == "again"


def test_a_store_is_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    """Permissions do not stop every user, so the folder only says that it cannot be written."""
    kept = Store(tmp_path / "a folder?" / "store.sqlite")
    kept.put(UNIT, Finished(1, None, 0.0))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert kept.get(UNIT) == Finished(1, None, 0.0)
    with pytest.raises(lg.InvalidArgumentError, match=r"cannot be written: .*readonly"):
        kept.put(UNIT, Finished(2, None, 0.0), replace=True)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("database or disk is full", lg.StorageError),
        ("disk I/O error", lg.StorageError),
        ("database is locked", lg.InvalidArgumentError),
        ("no such table: units", lg.CorruptFileError),
    ],
)
def test_what_goes_wrong_is_called_by_its_name(tmp_path, monkeypatch, message, kind):
    def fail(_):
        raise sqlite3.OperationalError(message)

    monkeypatch.setattr(store, "_connect", fail)
    (tmp_path / "store.sqlite").touch()
    with pytest.raises(kind, match=r"store\.sqlite"):
        Store(tmp_path / "store.sqlite").get(UNIT)


def test_the_order_of_keys_does_not_matter():
    assert key_of({"a": 1, "b": 2.0}) == key_of({"b": 2.0, "a": 1})


def test_the_first_result_stays_and_takes_the_place_of_a_failure(tmp_path):
    kept = Store(tmp_path / "store.sqlite")
    kept.put(UNIT, Finished(None, "it failed", 1.0))
    assert kept.get(UNIT) == Finished(None, "it failed", 1.0)
    kept.put(UNIT, Finished(1, None, 1.0))
    kept.put(UNIT, Finished(2, None, 1.0))
    kept.put(UNIT, Finished(None, "late failure", 1.0))
    assert kept.get(UNIT) == Finished(1, None, 1.0)
    assert len(rows_of(kept.path)) == 1


WRITE_MANY = """
import sys
import threading
from lqgap.experiments.store import Finished, Store, Unit
store = Store(sys.argv[1])
for number in range(20):
    unit = Unit("work", {"number": number}, seed=0)
    store.put(unit, Finished(number, None, 0.0))
"""


def test_several_processes_write_and_no_row_is_lost_or_doubled(tmp_path):
    path = tmp_path / "store.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_MANY, str(path)]) for _ in range(3)]
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0, 0]
    kept = Store(path)
    assert sorted(row["result"] for row in rows_of(kept.path)) == sorted(map(str, range(20)))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00" + bytes(4096)]
)
def test_what_is_no_store_is_refused_and_stays(tmp_path, content):
    path = tmp_path / "store.sqlite"
    path.write_bytes(content)
    kept = Store(path)
    if content:
        with pytest.raises(lg.CorruptFileError, match=r"store\.sqlite"):
            kept.get(UNIT)
        with pytest.raises(lg.CorruptFileError, match=r"store\.sqlite"):
            kept.put(UNIT, Finished(1, None, 0.0))
        assert path.read_bytes() == content
    else:
        assert kept.get(UNIT) is None  # an empty file is an empty database


def test_another_database_is_refused(tmp_path):
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(lg.CorruptFileError, match="no store of lqgap"):
        Store(path).get(UNIT)


def test_a_result_that_was_changed_is_noticed(tmp_path):
    kept = Store(tmp_path / "store.sqlite")
    kept.put(UNIT, Finished(1.5, None, 0.0))
    connection = sqlite3.connect(kept.path)
    connection.execute("UPDATE units SET result = '2.5'")
    connection.commit()
    connection.close()
    with pytest.raises(lg.CorruptFileError, match="result of train robust"):
        kept.get(UNIT)


def test_damage_anywhere_is_an_error_or_harmless(tmp_path):
    """Every 37th byte is changed in turn: a result that comes back is the one that was put there."""
    kept = Store(tmp_path / "store.sqlite")
    units = [Unit("work", {"number": number}, seed=0) for number in range(30)]
    for unit in units:
        kept.put(unit, Finished({"values": [0.5] * 20, "of": unit.configuration}, None, 0.0))
    connection = sqlite3.connect(kept.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = kept.path.read_bytes()
    noticed = 0
    for position in range(0, len(whole), 37):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        kept.path.write_bytes(damaged)
        try:
            found = kept.get(units[position % 30])
        except lg.LqgapError:
            noticed += 1
        else:
            assert found is None or found.result["of"] == {"number": position % 30}
    assert noticed > 0


def test_a_place_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(lg.LqgapError, match="file/store"):
        Store(tmp_path / "file" / "store").put(UNIT, Finished(1, None, 0.0))


def test_a_unit_that_is_computed_is_waited_for(tmp_path):
    kept, order = Store(tmp_path / "store.sqlite"), []

    def other():
        with kept.claim(UNIT):
            order.append("other")

    with kept.claim(UNIT):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_a_process_that_is_killed_leaves_its_claim(tmp_path):
    kept = Store(tmp_path / "store.sqlite")
    text = (
        "import sys, time\nfrom lqgap.experiments.store import Store, Unit\n"
        f"with Store({str(kept.path)!r}).claim(Unit({UNIT.name!r}, {UNIT.configuration!r}, {UNIT.seed})):\n"
        "    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        process.kill()
    with kept.claim(UNIT):
        pass


def test_a_store_that_is_kept_open_is_not_copied_after_every_result(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    log = store.path.with_name(f"{store.path.name}-wal")
    unit = Unit("work", {}, seed=0)
    with store.kept_open():
        store.put(unit, Finished(1, None, 0.0))
        assert log.stat().st_size > 0
    assert not log.exists()
    assert store.get(unit).result == 1
