"""Every key of a study file: what it may be and what it is if left out by the schema, its meaning by study.md."""

import functools
import json
import re
from pathlib import Path

from lqgap.experiments.methods import METHODS
from lqgap.experiments.study import schema

PAGE = Path(__file__).parents[1] / "study.md"
ROW = re.compile(r"^\| (`.*?) \| (.*) \|$", re.MULTILINE)
PLANTS = {
    "FamilyPlant": "a built-in family",
    "MatrixPlant": "matrices",
    "FilePlant": "a MAT file",
    "PythonPlant": "a Python function",
}
TABLES = {"Cost": "cost", "Grid": "grid", "Real": "real", "Evaluation": "evaluation", "Steps": "response"}


def describe_keys() -> str:
    """A table for every table of the file."""
    parts = schema()
    tables = parts["$defs"]
    top = {key: value for key, value in parts["properties"].items() if not _is_table(key)}
    sections = ["## Top level", _table(top, "")]
    shared = set.intersection(*(set(tables[name]["properties"]) for name in PLANTS))
    for name, words in PLANTS.items():
        own = {key: value for key, value in tables[name]["properties"].items() if key not in shared}
        sections += [f"## `[plant]`, {words}", tables[name]["description"], _table(own, "plant")]
    signals = {key: tables["FamilyPlant"]["properties"][key] for key in sorted(shared)}
    sections += ["## `[plant]`, with each of them", _table(signals, "plant")]
    for name, key in TABLES.items():
        sections += [f"## `[{key}]`", tables[name]["description"], _table(tables[name]["properties"], key)]
    return "\n\n".join([*sections, "## `[methods]`", *_methods(tables)])


@functools.cache
def read_meanings() -> dict[str, str]:
    """What study.md says of each key; keys of `[plant]` and of the top level stand there without a prefix."""
    meanings = {}
    for cell, meaning in ROW.findall(PAGE.read_text()):
        prefix = ""
        for name in re.findall(r"`(.*?)`", cell):
            table, _, key = name.rpartition(" ")
            prefix = table.strip("[]") or prefix
            meanings.setdefault(f"{prefix}.{key}" if prefix else key, meaning)
    return meanings


def _is_table(key: str) -> bool:
    return key in {"plant", "methods", *TABLES.values()}


def _methods(tables: dict) -> list[str]:
    sections = []
    for key, method in METHODS.items():
        sections += [f"### `{key}`: {method.label}", method.about]
        if properties := tables[method.__name__].get("properties"):
            sections.append(_table(properties, f"methods.{key}"))
    return sections


def _table(properties: dict, prefix: str) -> str:
    keys_of: dict[tuple[str, str, str], list[str]] = {}  # those that are told alike share a row
    for key, value in properties.items():
        told = (_values(value), _default(value), _meaning(key, value, prefix))
        keys_of.setdefault(told, []).append(f"`{key}`")
    rows = [f"| {', '.join(keys)} | {' | '.join(told)} |" for told, keys in keys_of.items()]
    table = ["| key | values | if left out | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([":::{table}", ":class: prose", "", *table, ":::"])


def _meaning(key: str, value: dict, prefix: str) -> str:
    meanings = read_meanings()
    own = f"{prefix}.{key}" if prefix and prefix != "plant" else key
    return value.get("description") or meanings.get(own) or _refused(own)


def _refused(key: str) -> str:
    raise KeyError(f"docs/study.md does not say what {key} means")


def _default(value: dict) -> str:
    if "default" not in value:
        return "**needed**"
    return "" if value["default"] is None else f"`{json.dumps(value['default'])}`"


def _values(value: dict) -> str:
    """What a key may be, in words."""
    if "anyOf" in value:
        options = [_values(each) for each in value["anyOf"] if each.get("type") != "null"]
        return ", or ".join(dict.fromkeys(options))
    if "enum" in value or "const" in value:
        return ", ".join(f'`"{each}"`' for each in value.get("enum", [value.get("const")]))
    if "$ref" in value:
        return "a table"
    return _simple(value)


def _simple(value: dict) -> str:
    kind = value.get("type", "")
    if kind == "array":
        return f"[{_values(value.get('items', {})) or '...'}, ...]"
    words = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}
    return f"{words.get(kind, 'a table')}{_range(value)}"


def _range(value: dict) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    parts = [f"{sign} {value[name]:.10g}" for name, sign in signs.items() if name in value]
    return f" {', '.join(parts)}" if parts else ""
