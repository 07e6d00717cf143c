import json

import pytest

from lqgap.cli.check import run_check
from lqgap.errors import InvalidStudyError


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
