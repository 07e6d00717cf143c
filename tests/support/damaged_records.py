"""Records with one thing wrong: a value of another kind or size, or a list of another length."""

import copy
import json
import random

from example_record import example_record

VALUES = [
    None,
    True,
    0,
    -1,
    7,
    10**30,
    0.5,
    -2.5,
    1e308,
    -1e308,
    1e-320,
    "inf",
    "-inf",
    "nan",
    "",
    "x",
    [],
    {},
]


def damaged_records(count, *, seed):
    """Texts of damaged records, and of what was done to each."""
    dice = random.Random(seed)  # noqa: S311
    whole = json.loads(example_record(num_plants=3, horizon=4).model_dump_json())
    places = list(_places(whole, ()))
    for _ in range(count):
        table, path = copy.deepcopy(whole), dice.choice(places)
        *way, last = path
        parent = table
        for step in way:
            parent = parent[step]
        done = _damage(parent, last, dice)
        yield json.dumps(table), f"{'.'.join(map(str, path))}: {done}"


def _places(value, path):
    """Few of many alike: two entries of every list."""
    if path:
        yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else list(enumerate(value))[:2]
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from _places(item, (*path, key))


def _damage(parent, key, dice):
    kind = dice.choice(["set", "remove", "double", "cut", "set"])
    value = parent[key]
    if kind == "remove" or (kind == "cut" and not isinstance(value, list)):
        del parent[key]
        return "removed"
    if kind == "cut":
        parent[key] = value[: len(value) // 2]
        return "cut"
    if kind == "double" and isinstance(value, list):
        parent[key] = value + value
        return "doubled"
    parent[key] = dice.choice(VALUES)
    return f"set to {parent[key]!r}"
