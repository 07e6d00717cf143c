import sqlite3
import subprocess
import sys

import pytest

import lqgap as lg
from lqgap.experiments.store import Finished, Store, Unit, key_of

ABOUT = dict(versions={"lqgap": "0"}, precision="float64")
UNIT = Unit("train robust", {"steps": 3, "range": [0.5, 4.0]}, seed=1)


def test_a_result_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path / "deep" / "store.sqlite")
    assert store.get(UNIT) is None
    store.put(UNIT, Finished({"gap": [0.1, 1 / 3]}, None, 2.5), **ABOUT)
    assert Store(store.path).get(UNIT) == Finished({"gap": [0.1, 1 / 3]}, None, 2.5)
    (row,) = store.rows()
    assert (row["name"], row["seed"], row["precision"]) == ("train robust", 1, "float64")


@pytest.mark.parametrize(
    "other",
    [
        Unit("train", UNIT.configuration, 1),
        Unit(UNIT.name, {"steps": 4, "range": [0.5, 4.0]}, 1),
        Unit(UNIT.name, {"steps": 3, "range": [0.5, 4.1]}, 1),
        Unit(UNIT.name, UNIT.configuration, 2),
    ],
)
def test_whatever_may_change_a_result_changes_the_key(other):
    assert other.key != UNIT.key


def test_the_order_of_keys_does_not_matter():
    assert key_of({"a": 1, "b": 2.0}) == key_of({"b": 2.0, "a": 1})


def test_the_first_result_stays_and_takes_the_place_of_a_failure(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.put(UNIT, Finished(None, "it failed", 1.0), **ABOUT)
    assert store.get(UNIT) == Finished(None, "it failed", 1.0)
    store.put(UNIT, Finished(1, None, 1.0), **ABOUT)
    store.put(UNIT, Finished(2, None, 1.0), **ABOUT)
    store.put(UNIT, Finished(None, "late failure", 1.0), **ABOUT)
    assert store.get(UNIT) == Finished(1, None, 1.0)
    assert len(store.rows()) == 1


WRITE_MANY = """
import sys
from lqgap.experiments.store import Finished, Store, Unit
store = Store(sys.argv[1])
for number in range(20):
    unit = Unit("work", {"number": number}, seed=0)
    store.put(unit, Finished(number, None, 0.0), versions={}, precision="float64")
"""


def test_several_processes_write_and_no_row_is_lost_or_doubled(tmp_path):
    path = tmp_path / "store.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_MANY, str(path)]) for _ in range(3)]
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0, 0]
    store = Store(path)
    assert sorted(row["result"] for row in store.rows()) == sorted(map(str, range(20)))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00" + bytes(4096)]
)
def test_what_is_no_store_is_refused_and_stays(tmp_path, content):
    path = tmp_path / "store.sqlite"
    path.write_bytes(content)
    store = Store(path)
    if content:
        with pytest.raises(lg.CorruptFileError, match=r"store\.sqlite"):
            store.get(UNIT)
        with pytest.raises(lg.CorruptFileError, match=r"store\.sqlite"):
            store.put(UNIT, Finished(1, None, 0.0), **ABOUT)
        assert path.read_bytes() == content
    else:
        assert store.get(UNIT) is None  # an empty file is an empty database


def test_another_database_is_refused(tmp_path):
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(lg.CorruptFileError, match="no store of lqgap"):
        Store(path).get(UNIT)


def test_a_result_that_was_changed_is_noticed(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.put(UNIT, Finished(1.5, None, 0.0), **ABOUT)
    connection = sqlite3.connect(store.path)
    connection.execute("UPDATE units SET result = '2.5'")
    connection.commit()
    connection.close()
    with pytest.raises(lg.CorruptFileError, match="result of train robust"):
        store.get(UNIT)


def test_damage_anywhere_is_an_error_or_harmless(tmp_path):
    """Every 37th byte is changed in turn: a result that comes back is the one that was put there."""
    store = Store(tmp_path / "store.sqlite")
    units = [Unit("work", {"number": number}, seed=0) for number in range(30)]
    for unit in units:
        store.put(unit, Finished({"values": [0.5] * 20, "of": unit.configuration}, None, 0.0), **ABOUT)
    connection = sqlite3.connect(store.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = store.path.read_bytes()
    noticed = 0
    for position in range(0, len(whole), 37):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        store.path.write_bytes(damaged)
        try:
            found = store.get(units[position % 30])
        except lg.LqgapError:
            noticed += 1
        else:
            assert found is None or found.result["of"] == {"number": position % 30}
    assert noticed > 0


def test_a_place_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(lg.LqgapError, match="file/store"):
        Store(tmp_path / "file" / "store").put(UNIT, Finished(1, None, 0.0), **ABOUT)
