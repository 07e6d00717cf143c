import json
import subprocess
import sys

import pytest

from lqgap.cli.check import run_check
from lqgap.errors import InvalidStudyError
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
