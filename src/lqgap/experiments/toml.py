"""TOML with line numbers, and back: what `tomllib` leaves out.

`find_lines` walks through a text that `tomllib` has accepted and notes where every key stands, so that an
error can name its line. A path is the keys from the top, with numbers in arrays: ("real", "plants", 0).
"""

import bisect
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]
BARE = re.compile(r"[A-Za-z0-9_-]+")
SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
BLANK = re.compile(r"[ \t]*")
STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
PLAIN = re.compile(r"[^,\]}#\n]*")
PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""  # of a key
MAX_DEPTH, MAX_KEYS = 50, 20_000
DEEP = re.compile(
    rf"(?<![\w.-]){PART}(?:\.[ \t]*+{PART}){{{MAX_DEPTH}}}|(?:[\[{{][^][{{}}]*+){{{MAX_DEPTH}}}"
)


def find_lines(text: str) -> dict[Path, int]:
    """The line, from one, in which each key or array entry of a valid document first stands."""
    return _Walk(text).lines


def require_modest(text: str) -> None:
    """Raise for a document so deep, or of so many keys, that it cannot be read, or not within minutes."""
    if found := DEEP.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"keys or brackets are more than {MAX_DEPTH} deep (at line {line}, column 1)")
    if text.count("=") > MAX_KEYS:
        raise ValueError(f"it has more than {MAX_KEYS} keys")


def line_of(lines: Mapping[Path, int], path: Sequence[str | int]) -> int | None:
    """The line of a path, or of the nearest part of the document that it would belong to."""
    for length in range(len(path), 0, -1):
        if (found := lines.get(tuple(path[:length]))) is not None:
            return found
    return None


def write_toml(table: Mapping[str, Any]) -> str:
    """A document; values are texts, numbers, truth values, lists and tables with texts as keys."""
    return "\n".join(_table(table, ())) + "\n"


def write_entry(key: str, value: Any) -> str:
    """A key and its value, on one line."""
    return f"{_key(key)} = {_value(value)}"


class _Walk:
    """One pass over a document; `place` moves along the text."""

    def __init__(self, text: str):
        self.text, self.place = text, 0
        self.ends = [match.start() for match in re.finditer("\n", text)]  # of lines
        self.lines: dict[Path, int] = {}
        self.counts: dict[Path, int] = {}
        table: Path = ()
        while self.skip(SPACE) < len(text):
            if text[self.place] == "[":
                table = self.header()
            else:
                self.pair(table)

    def skip(self, pattern: re.Pattern[str]) -> int:
        if match := pattern.match(self.text, self.place):
            self.place = match.end()
        return self.place

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.line(self.place))

    def line(self, place: int) -> int:
        return bisect.bisect_left(self.ends, place) + 1

    def header(self) -> Path:
        is_array = self.text.startswith("[[", self.place)
        self.place += 2 if is_array else 1
        keys = self.keys()
        self.place += 2 if is_array else 1
        path = self.resolve(keys[:-1]) + keys[-1:]
        if is_array:
            self.note(path)
            self.counts[path] = self.counts.get(path, -1) + 1
            path = (*path, self.counts[path])
        self.note(path)
        return path

    def resolve(self, keys: Path) -> Path:
        """The path with the number of the last table of every array of tables on the way."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self.counts:
                path = (*path, self.counts[path])
        return path

    def keys(self) -> Path:
        """Keys joined by dots, up to what follows them."""
        found: list[str] = []
        while True:
            self.skip(BLANK)
            match = STRING.match(self.text, self.place) or BARE.match(self.text, self.place)
            if match is None:
                raise ValueError(f"no key at character {self.place}")
            self.place = match.end()
            key = match[0]
            found.append(next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key)
            self.skip(BLANK)
            if self.text[self.place] != ".":
                return tuple(found)
            self.place += 1

    def pair(self, table: Path) -> None:
        start = self.place
        keys = self.keys()
        for length in range(1, len(keys) + 1):
            self.lines.setdefault((*table, *keys[:length]), self.line(start))
        self.place += 1  # the equals sign
        self.skip(BLANK)
        self.value((*table, *keys))

    def value(self, path: Path) -> None:
        opening = self.text[self.place]
        if opening in "\"'":
            self.skip(STRING)
        elif opening in "[{":
            self.place += 1
            index = 0
            while self.text[self.skip(SPACE)] not in "]}":
                if opening == "{":
                    self.pair(path)
                else:
                    self.note((*path, index))
                    self.value((*path, index))
                index += 1
                if self.text[self.skip(SPACE)] == ",":
                    self.place += 1
            self.place += 1
        else:
            self.skip(PLAIN)


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Plain entries first, then the tables below under headers of their own."""
    below = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [write_entry(key, value) for key, value in table.items() if key not in below]
    for key, value in below.items():
        inner = (*path, key)
        lines += ["", f"[{'.'.join(map(_key, inner))}]", *_table(value, inner)]
    return lines


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)  # of a float, the shortest text that reads back as the same number


def _text(text: str) -> str:
    """JSON escapes what TOML escapes, but for one control character, and for halves of surrogate pairs."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
