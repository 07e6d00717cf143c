"""Finished work, a row each: what was computed is never computed again.

A unit of work is found by its key, a hash of everything that determines its result: the code, too. Results
are plain values in JSON with a checksum; how long it took and on what machine stands beside them and is no
part of the result. SQLite in its WAL mode lets several processes read and write, and loses nothing when one
is killed. What is damaged is an error; no result of other code or other files is ever deleted.
"""

import contextlib
import hashlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed_to
from pathlib import Path
from typing import Any

from lqgap.errors import CorruptFileError, InvalidArgumentError, LqgapError, StorageError
from lqgap.experiments.provenance import code_hash, first_changed, versions

FORMAT = 1
PRECISION = "float64"
APPLICATION = 0x6C716770  # "lqgp", in the header of the file
PATIENCE = 60.0  # seconds to wait for another process
MAX_WAIT = 1e6  # seconds to wait for what another process computes
TABLE = """
CREATE TABLE IF NOT EXISTS units (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, configuration TEXT NOT NULL, result TEXT, error TEXT,
    checksum TEXT NOT NULL, seed INTEGER NOT NULL, precision TEXT NOT NULL, versions TEXT NOT NULL,
    machine TEXT NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class Unit:
    """A piece of work: its name, and all that determines its result."""

    name: str
    configuration: Mapping[str, Any]
    seed: int
    files: Mapping[str, str] = field(default_factory=dict)  # that the result was made from, with checksums

    @property
    def stem(self) -> str:
        """The key without the files, which are not known before the result is."""
        return key_of([self.name, self.configuration, self.seed, code_hash(), FORMAT])

    @property
    def key(self) -> str:
        """Different for whatever may give another result."""
        return f"{self.stem}-{key_of(self.files)}" if self.files else self.stem


@dataclass(frozen=True)
class Finished:
    """A unit that was computed, or failed."""

    result: Any
    error: str | None
    seconds: float


def key_of(value: Any) -> str:
    """A hash of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Store:
    """The rows in a file, made if it is not there."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    def get(self, unit: Unit) -> Finished | None:
        """What is known of a unit, if it was computed or has failed."""
        if not self.path.exists():
            return None
        with self._open() as connection:
            row = connection.execute(
                "SELECT result, error, checksum, seconds FROM units WHERE key = ?", (unit.key,)
            ).fetchone()
        if row is None:
            return None
        result, error, checksum, seconds = row
        is_sound = all(each is None or isinstance(each, str) for each in (result, error))
        is_sound &= isinstance(seconds, float)
        if not is_sound or checksum != _checksum(unit.key, result, error):
            raise CorruptFileError(f"{self.path} is damaged: the result of {unit.name} was changed")
        return Finished(None if result is None else json.loads(result), error, seconds)

    def held(self, unit: Unit) -> Any:
        """What the largest budget that cut a unit has found; None if none did."""
        if not self.path.exists():
            return None
        query = "SELECT json_extract(configuration, '$.budget') FROM units WHERE name = ? ORDER BY 1 DESC"
        with self._open() as connection:
            budgets = [row[0] for row in connection.execute(query, (unit.name,)) if row[0] is not None]
        cut = (changed_to(unit, configuration={**unit.configuration, "budget": each}) for each in budgets)
        found = (known.result for known in map(self.get, cut) if known is not None and known.error is None)
        return next(found, None)

    def find(self, unit: Unit, folder: Path) -> tuple[Unit | None, str | None]:
        """The unit as it was computed from files that are still the same; if none is, a file that is not.

        Args:
            folder: that paths of files are relative to.
        """
        if not self.path.exists():
            return None, None
        with self._open() as connection:
            rows = connection.execute(
                "SELECT configuration FROM units"
                " WHERE (key = ? OR (key > ? AND key < ?)) AND result IS NOT NULL",
                (unit.stem, f"{unit.stem}-", f"{unit.stem}."),  # a dot follows the dash
            ).fetchall()
            found = [changed_to(unit, files=json.loads(row)["files"]) for (row,) in rows]
        changed = [first_changed(each.files, folder) for each in found]
        for each, name in zip(found, changed, strict=True):
            if name is None:
                return each, None
        return None, next(iter(changed), None)

    def has_other_code(self) -> bool:
        """Whether some results were computed by other code than this."""
        if not self.path.exists():
            return False
        with self._open() as connection:
            query = "SELECT 1 FROM units WHERE json_extract(versions, '$.code') IS NOT ? LIMIT 1"
            return connection.execute(query, (code_hash(),)).fetchone() is not None

    def put(self, unit: Unit, finished: Finished, *, replace: bool = False) -> None:
        """Keep a result in place of a failure; an earlier result stays unless it is to be replaced."""
        result = None if finished.error is not None else _dump(finished.result)
        row = (
            unit.key,
            unit.name,
            _dump({**unit.configuration, "files": dict(unit.files)}),
            result,
            finished.error,
            _checksum(unit.key, result, finished.error),
            unit.seed,
            PRECISION,
            _dump({**versions(), "code": code_hash()}),
            _dump({"system": platform.system(), "machine": platform.machine(), "processors": os.cpu_count()}),
            finished.seconds,
        )
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            failed = "key IN (?, ?) AND result IS NULL"  # before its files were known, and after
            connection.execute(f"DELETE FROM units WHERE {failed}", (unit.stem, unit.key))  # noqa: S608
            if replace:
                connection.execute("DELETE FROM units WHERE key = ?", (unit.key,))
            connection.execute(f"INSERT OR IGNORE INTO units VALUES ({','.join('?' * len(row))})", row)  # noqa: S608
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def kept_open(self) -> Iterator[None]:
        """For many results: the last one to close the file also copies what was new into it, every time."""
        with self._open():
            pass  # the table is there
        with contextlib.closing(_connect(self.path)) as connection:
            connection.execute("SELECT 1 FROM units LIMIT 1").fetchone()
            yield

    @contextlib.contextmanager
    def claim(self, unit: Unit) -> Iterator[None]:
        """Hold a unit while it is computed: other processes wait, and go on if this one is killed."""
        path = self.path.with_name("claims") / unit.key
        path.parent.mkdir(parents=True, exist_ok=True)
        # An empty file, which stays; the lock on it ends with the process.
        with contextlib.closing(sqlite3.connect(path, timeout=MAX_WAIT, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            connection = _connect(self.path)
            _prepare(connection, self.path)
            yield connection
        except sqlite3.OperationalError as error:
            raise _explain(self.path, error) from None
        except (sqlite3.DatabaseError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise CorruptFileError(
                f"{self.path} is damaged, or no store of lqgap: {error}; move it away to compute all anew"
            ) from None
        except OSError as error:
            raise InvalidArgumentError(f"{self.path} cannot be used: {error.strerror}") from None
        finally:
            if connection is not None:
                connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    """Where nothing can be written, SQLite must be told that nobody else does."""
    if path.exists() and not os.access(path.parent, os.W_OK):
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None)
    path.parent.mkdir(parents=True, exist_ok=True)
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)


def _explain(path: Path, error: sqlite3.OperationalError) -> LqgapError:
    text = str(error)
    if "locked" in text:
        return InvalidArgumentError(f"{path} is in use by another process for more than {PATIENCE:g} s")
    if "full" in text or "disk I/O" in text:
        return StorageError(f"{path} cannot be written: {text}; what it has is kept")
    if "readonly" in text or "unable to open" in text:
        return InvalidArgumentError(f"{path} cannot be written: {text}")
    return CorruptFileError(f"{path} cannot be used as a store: {text}")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the table in a new file; refuse a file that is something else."""
    # All of it at once: another process may make the table in between.
    application, version, count = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
        "FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if (application, version) == (APPLICATION, FORMAT):
        return
    if application == APPLICATION:
        raise CorruptFileError(f"{path} has the format {version}, and this version reads {FORMAT}")
    if count or application:
        raise CorruptFileError(f"{path} is no store of lqgap")
    _use_wal(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(TABLE)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Try again while another process makes the same file: for this, SQLite itself does not wait."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))  # the order of keys is kept


def _checksum(key: str, result: str | None, error: str | None) -> str:
    return hashlib.sha256(_dump([key, result, error]).encode()).hexdigest()
