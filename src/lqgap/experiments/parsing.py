"""Studies from files; an error names the file, the line and the key, and the nearest key that there is."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import pydantic
from pydantic import BaseModel

from lqgap.errors import InvalidArgumentError, InvalidStudyError, did_you_mean
from lqgap.experiments.methods import METHODS
from lqgap.experiments.plant_tables import PLANTS
from lqgap.experiments.study import Study
from lqgap.experiments.toml import BARE, find_lines, line_of, require_modest, write_entry
from lqgap.files import read_bytes

MAX_SIZE = 2**21  # bytes of a study


@dataclass(frozen=True)
class Source:
    """Where a study came from, to name file and line in errors.

    Args:
        folder: what paths of files in the study are relative to.
    """

    name: str
    folder: Path
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)

    def error(self, path: Sequence[str | int], message: str) -> InvalidStudyError:
        """The error that something at this place of the study is wrong."""
        line = line_of(self.lines, path)
        where = self.name if line is None else f"{self.name}, line {line}"
        key = ".".join(str(part) if BARE.fullmatch(str(part)) else repr(part) for part in path)
        return InvalidStudyError(f"{where}: {key}: {message}" if key else f"{where}: {message}")


def example_text() -> str:
    """The commented example: the default study, with all methods that there are."""
    text = resources.files("lqgap.experiments").joinpath("example.toml").read_text(encoding="utf-8")
    rows = sorted(map(_example_of, METHODS), key=lambda row: row.startswith("\n"))  # tables come last
    return text.replace("# METHODS", "\n".join(rows))


def default_study() -> tuple[Study, Source]:
    """The study that runs if none is given."""
    return parse_study(example_text(), name="the built-in study", folder=Path())


def read_study(path: str | Path) -> tuple[Study, Source]:
    """The study of a file."""
    path = Path(path)
    try:
        text = read_bytes(path, limit=MAX_SIZE).decode("utf-8-sig")
    except InvalidArgumentError as error:
        raise InvalidStudyError(str(error)) from None
    except UnicodeDecodeError as error:
        raise InvalidStudyError(f"{path} is not a TOML file: {error}") from None
    return parse_study(text, name=str(path), folder=path.parent)


def parse_study(text: str, *, name: str, folder: Path) -> tuple[Study, Source]:
    """A study from its text."""
    try:
        require_modest(text)
        table = tomllib.loads(text)
        lines = find_lines(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        where = f"{name}, line {found[1]}" if found else name
        reason = str(error).replace(found[0], "") if found else str(error)
        raise InvalidStudyError(f"{where}: this is not TOML: {reason}") from None
    source = Source(name, folder, lines)
    return check_study(table, source), source


def check_study(table: Mapping[str, Any], source: Source) -> Study:
    """The study that a table describes."""
    try:
        return Study.model_validate(table)
    except pydantic.ValidationError as error:
        errors = [(_place(details, table), details) for details in error.errors()]
        path, first = min(errors, key=lambda item: _rank(item[0], source))
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise source.error(path, _explain(first) + more) from None
    except RecursionError:
        raise source.error((), "tables are nested too deeply") from None


def _example_of(name: str) -> str:
    """The line of a method in the example, or its table if it has many options; as a comment if left out."""
    method, options = METHODS[name], METHODS[name]().model_dump()
    mark = "" if method.is_default else "# "
    if len(options) <= 2:
        return f"{mark + write_entry(name, options):<43} # {method.about}"
    rows = [f"\n{mark + f'[methods.{name}]':<27} # {method.about}"]
    for key, value in options.items():
        field = method.model_fields[key]
        entry = mark + write_entry(key, value) if value is not None else _commented(key, field)
        rows.append(f"{entry:<27} # {field.description}")
    return "\n".join(rows)


def _commented(key: str, field: Any) -> str:
    """A key that has no value by default, with one that it may have."""
    return f"# {write_entry(key, (field.examples or [''])[0])}"


def _place(details: Any, table: Any) -> tuple[str | int, ...]:
    """Where an error is, without what Pydantic adds to tell alternatives apart: parts that are not there."""
    path: list[str | int] = []
    for part in details["loc"]:
        is_index = isinstance(table, list) and isinstance(part, int) and part < len(table)
        if is_index or (isinstance(table, Mapping) and part in table):
            table = table[part]
            path.append(part)
    return (*path, details["loc"][-1]) if details["type"] == "missing" else tuple(path)


def _rank(path: Sequence[str | int], source: Source) -> tuple[float, int]:
    """What is read first: the first line, and in it what is most precise."""
    line = line_of(source.lines, path)
    return math.inf if line is None else float(line), -len(path)


def _explain(details: Any) -> str:
    """What is wrong, in words, with what would be right."""
    location, kind = details["loc"], details["type"]
    if kind == "extra_forbidden":
        names = _names_at(location[:-1])
        hint = did_you_mean(location[-1], names) or f"; there are {', '.join(names) or 'none'}"
        return f"there is no such key{hint}"
    if kind == "missing":
        return "this key is missing"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        keys = details["input"] if isinstance(details["input"], Mapping) else {}
        hint = next(filter(None, (did_you_mean(key, PLANTS) for key in keys)), "")
        return f"expected a table with one of the keys {', '.join(PLANTS)}{hint}"
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    shown = repr(details["input"])
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return message if isinstance(details["input"], Mapping) else f"{message} (it is {shown})"


def _names_at(location: Sequence[str | int]) -> list[str]:
    """The keys that a place of a study may have."""
    model: Any = Study
    for part in location:
        if isinstance(part, str) and part.startswith("<"):
            model = PLANTS[part[1:-1]]
        elif isinstance(part, str) and part in model.model_fields:
            inner = _models(model.model_fields[part].annotation)
            model = inner[0] if inner else model
    return list(model.model_fields)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]
