import collections
import json
import re
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest

from lqgap.cli.check import run_check
from lqgap.errors import InvalidStudyError, LqgapError
from lqgap.simulators.plants import FAMILIES


def write(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_the_audit_is_printed(tmp_path, capsys):
    path = write(tmp_path, '[plant]\nfamily = "unknown_sign"\n[real]\ncount = 1\n')
    run_check(path, trust=False, as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert report["num_members"] == 2
    run_check(path, trust=False, as_json=False)
    assert "Assumptions of a class of 2 members" in capsys.readouterr().out


def test_real_plants_are_checked_too(tmp_path):
    path = write(tmp_path, '[plant]\nfamily = "unknown_sign"\n[real]\nplants = [{sgn = 1}]\n')
    with pytest.raises(InvalidStudyError, match="sgn"):
        run_check(path, trust=False, as_json=False)


CHECKS = """
import sys
from pathlib import Path
from lqgap.cli.check import run_check
for path in sys.argv[1:]:
    run_check(Path(path), trust=False, as_json=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_that_is_written_to_standard_output_is_json(tmp_path):
    """Of the process, not of Python: LAPACK prints, too. All families, one after the other, by one process."""
    paths = [tmp_path / f"{name}.toml" for name in FAMILIES]
    for path in paths:
        path.write_text(f'horizon = 40\n[plant]\nfamily = "{path.stem}"\n[grid]\nsample = 12\n')
    run = [sys.executable, "-c", CHECKS, *map(str, paths)]
    text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    for _ in paths:
        report, end = json.JSONDecoder().raw_decode(text)
        assert report["num_members"] <= 12
        text = text[end:].lstrip("\n")
    assert text == ""


@pytest.mark.slow
def test_a_sample_of_a_small_family_is_smaller_with_a_note(tmp_path):
    path = write(tmp_path, '[plant]\nfamily = "unknown_sign"\n[grid]\nsample = 6\n')
    run = [sys.executable, "-m", "lqgap", "check", str(path), "--json"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["num_members"] == 2
    assert done.stderr == "note: a sample of 6 members was asked for, and there are only 2: all are taken\n"


SERVO = """
[plant]
A = [["pole"]]
B = [[1.0]]
C = [[1.0]]
parameters = {pole = [0.5, 0.9]}
[grid]
points = 2
[response]
"""


@pytest.mark.parametrize(
    ("key", "value"),
    [("reference", "[0.02, 0.1]"), ("follow", "[0, 0]"), ("follow", "[1]"), ("load", "[1.0, 2.0]")],
)
def test_a_response_that_does_not_fit_the_plant_is_refused_by_the_key_that_was_written(tmp_path, key, value):
    keys = {"reference": "0.02"} | {key: value}
    text = SERVO + "\n".join(
        f"{name} = {given}" for name, given in sorted(keys.items(), key=lambda i: i[0] != key)
    )
    path = write(tmp_path, text)
    with pytest.raises(InvalidStudyError, match=rf"line 10: response.{key}: it is \["):
        run_check(path, trust=False, as_json=True)


MUTABLE = """
horizon = "4 s"
ends = false
seed = 3
[plant]
dt = 0.5
A = [["-pole", 0.1], [0, -1]]
B = [[1.0], ["gain"]]
C = [[1.0, 0.0]]
W = [[0.1, 0.01], [0.01, "0.2*dt"]]
V = [[0.01]]
parameters = {pole = [0.5, 0.9], gain = {choices = [1, 2]}}
delay = 0.25
limits = [-1, 1]
rate_limits = 2.0
operating_point = {u0 = [0.5], y0 = [20.0]}
inputs = ["valve [V]"]
outputs = ["level [m]"]
[cost]
Q = [[2.0]]
R = [[0.1]]
[grid]
points = 2
[methods]
bank = {}
robust = {policy = "bank", steps = 2}
[real]
count = 1
plants = [{pole = 0.6, gain = 1}]
[response]
reference = 22.0
load = 0.5
horizon = 9
"""
TOKENS = [
    "-1",
    "0",
    "1e308",
    "nan",
    "inf",
    "true",
    '""',
    '"pole"',
    '"1/0"',
    "[]",
    "[[]]",
    "{}",
    "[1, 2]",
    "[[1, 2], [3, 4]]",
]
TOKENS += [
    "9" * 30,
    "2025-01-01",
    "{choices = []}",
    '"sqrt(-1)"',
    '"2 s"',
    "[",
    "]",
    "=",
    "#",
    "\\u0000",
    "-1e-300",
    "[[0, 1], [1, 0]]",
]


def mutated(rng):
    """The study with one to three entries, keys or lines changed, left out, doubled or moved."""
    lines = MUTABLE.strip().splitlines()
    for _ in range(rng.integers(1, 4)):
        row, kind = rng.integers(len(lines)), rng.integers(6)
        entries = list(re.finditer(r"-?\d[\d.e]*|\"[^\"]*\"|\w+|[][{}=,]", lines[row]))
        if kind == 0:
            lines.insert(rng.integers(len(lines)), lines[row])
        elif kind == 1 and len(lines) > 2:
            del lines[row]
        elif kind == 2:
            lines.insert(rng.integers(len(lines)), lines.pop(row))
        elif entries:
            found, token = entries[rng.integers(len(entries))], TOKENS[rng.integers(len(TOKENS))]
            lines[row] = lines[row][: found.start()] + token + lines[row][found.end() :]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run_it")
def test_mutated_studies_are_checked_or_refused_by_errors_of_the_library(tmp_path):
    rng, outcomes = np.random.default_rng(0), collections.Counter()
    for _ in range(150):
        text = mutated(rng)
        path = write(tmp_path, text)
        try:
            with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
                warnings.simplefilter("ignore")
                run_check(path, trust=False, as_json=True)
            outcomes["checked"] += 1
        except LqgapError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{text}")
    assert outcomes["checked"] > 0
    assert outcomes["InvalidStudyError"] > 75
