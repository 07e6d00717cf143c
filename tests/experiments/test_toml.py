import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lqgap.experiments.toml import find_lines, line_of, write_toml

DOCUMENT = '''# a comment
horizon = 3  # another [x]
"quoted key" = """two
lines = 1"""

[plant]
family = 'a "b" # c'
A = [
  [1, 2], # row
  [3, {deep = 4}],
]
dotted.key = 5
inline = { one = 1, two = { three = "]" } }

[[real.plants]]
gain = 1
[[real.plants]]
gain = 2
[real.plants.sub]
x = 1e3
'''


def test_every_key_is_found_in_its_line():
    tomllib.loads(DOCUMENT)
    lines = find_lines(DOCUMENT)
    expected = {
        ("horizon",): 2,
        ("quoted key",): 3,
        ("plant",): 6,
        ("plant", "family"): 7,
        ("plant", "A"): 8,
        ("plant", "A", 0): 9,
        ("plant", "A", 1, 1, "deep"): 10,
        ("plant", "dotted", "key"): 12,
        ("plant", "inline", "two", "three"): 13,
        ("real", "plants"): 15,
        ("real", "plants", 0, "gain"): 16,
        ("real", "plants", 1): 17,
        ("real", "plants", 1, "gain"): 18,
        ("real", "plants", 1, "sub", "x"): 20,
    }
    assert {path: lines[path] for path in expected} == expected


def test_a_large_matrix_is_walked_through_in_seconds():
    text = "A = [\n" + "[1.0, 2.0, 3.0, 4.0],\n" * 20_000 + "]\n"
    start = time.process_time()
    lines = find_lines(text)
    assert time.process_time() - start < 5
    assert lines["A", 19_999, 3] == 20_001


def test_a_missing_key_is_placed_where_it_would_belong():
    lines = find_lines(DOCUMENT)
    assert line_of(lines, ("plant", "inline", "four")) == 13
    assert line_of(lines, ("nowhere",)) is None


KEYS = st.text(max_size=6)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def paths(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield (*path, index)
            yield from paths(item, (*path, index))


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_reads_back_and_every_path_has_a_line(table):
    text = write_toml(table)
    assert tomllib.loads(text) == table
    lines = find_lines(text)
    assert set(paths(table)) <= lines.keys()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings_do_not_matter(ending):
    assert find_lines(ending.join(["a = 1", "", "[b]", "c = 2", ""]))[("b", "c")] == 4
