"""Finished work, a row each: what was computed is never computed again.

A unit of work is found by its key, a hash of everything that determines its result (`key_of`). Results are
plain values in JSON with a checksum; how long it took and on what machine stands beside them and is no part
of the result. SQLite in its WAL mode lets several processes read and write, and loses nothing when one is
killed. What is damaged is an error; nothing is ever deleted.
"""

import contextlib
import hashlib
import json
import os
import platform
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lqgap.errors import CorruptFileError, InvalidArgumentError
from lqgap.version import __version__

FORMAT = 1
APPLICATION = 0x6C716770  # "lqgp", in the header of the file
PATIENCE = 60.0  # seconds to wait for another process
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

    @property
    def key(self) -> str:
        """Different for whatever may give another result: name, configuration, seed, version of lqgap."""
        return key_of([self.name, self.configuration, self.seed, __version__, FORMAT])


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
        if checksum != _checksum(unit.key, result, error):
            raise CorruptFileError(f"{self.path} is damaged: the result of {unit.name} was changed")
        return Finished(None if result is None else json.loads(result), error, seconds)

    def put(self, unit: Unit, finished: Finished, *, versions: Mapping[str, str], precision: str) -> None:
        """Keep a result; the first one stays, and takes the place of a failure."""
        result = None if finished.error is not None else _dump(finished.result)
        row = (
            unit.key,
            unit.name,
            _dump(unit.configuration),
            result,
            finished.error,
            _checksum(unit.key, result, finished.error),
            unit.seed,
            precision,
            _dump(versions),
            _dump(machine_shape()),
            finished.seconds,
        )
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM units WHERE key = ? AND result IS NULL", (unit.key,))
            connection.execute(f"INSERT OR IGNORE INTO units VALUES ({','.join('?' * len(row))})", row)  # noqa: S608
            connection.execute("COMMIT")

    def rows(self) -> list[dict[str, Any]]:
        """All rows, by name and key, for whoever wants to look."""
        if not self.path.exists():
            return []
        with self._open() as connection:
            cursor = connection.execute("SELECT * FROM units ORDER BY name, key")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            _prepare(connection, self.path)
            yield connection
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InvalidArgumentError(
                    f"{self.path} is in use by another process for more than {PATIENCE:g} s"
                ) from None
            raise CorruptFileError(f"{self.path} cannot be used as a store: {error}") from None
        except (sqlite3.DatabaseError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise CorruptFileError(f"{self.path} is damaged, or no store of lqgap: {error}") from None
        except OSError as error:
            raise InvalidArgumentError(f"{self.path} cannot be used: {error.strerror}") from None
        finally:
            if connection is not None:
                connection.close()


def machine_shape() -> dict[str, Any]:
    """What kind of machine this is."""
    return {"system": platform.system(), "machine": platform.machine(), "processors": os.cpu_count()}


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the table in a new file; refuse a file that is something else."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {pragma}").fetchone() for pragma in ("application_id", "user_version")
    )
    if (application, version) == (APPLICATION, FORMAT):
        return
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == APPLICATION:
        raise CorruptFileError(f"{path} has the format {version}, and this version reads {FORMAT}")
    if count or application:
        raise CorruptFileError(f"{path} is no store of lqgap")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(TABLE)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))  # the order of keys is kept


def _checksum(key: str, result: str | None, error: str | None) -> str:
    return hashlib.sha256(_dump([key, result, error]).encode()).hexdigest()
