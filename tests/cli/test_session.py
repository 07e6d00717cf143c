import json
import os
import subprocess
import sys

import pytest

from lqgap.cli.session import Progress, finish, open_study, prepare_jax, print_rows, printable, shown
from lqgap.errors import InvalidStudyError, StorageError


def test_jax_is_set_up_by_variables_that_processes_inherit(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_ENABLE_X64", "0")  # with which no command could compute
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    prepare_jax()
    assert os.environ["JAX_ENABLE_X64"] == "1"
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "lqgap" / "jax")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "elsewhere")
    prepare_jax()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "elsewhere"


@pytest.mark.parametrize("command", [["check"], ["solve"], ["plants"]])
def test_a_device_that_is_not_there_is_blamed_on_who_asked_for_it(command):
    result = subprocess.run(
        [sys.executable, "-m", "lqgap", *command],
        env=os.environ | {"JAX_PLATFORMS": "nonsense"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr == "error: JAX_PLATFORMS is 'nonsense', and JAX finds no such device\n"


def test_parts_of_an_answer_fail_each_on_its_own(capsys):
    done = []

    def fail(error):
        raise error

    with pytest.raises(StorageError, match="third"):
        finish(
            lambda: fail(StorageError("first\nline")),
            lambda: done.append("second"),
            lambda: fail(OSError(28, "No space left", "file")),
            lambda: fail(StorageError("third")),
        )
    assert done == ["second"]
    assert capsys.readouterr().err == "error: first line\nerror: [Errno 28] No space left: 'file'\n"
    finish(lambda: done.append("all"))
    assert done == ["second", "all"]


def test_without_a_file_there_is_a_study_and_the_seed_can_be_chosen(tmp_path):
    study, source = open_study(None)
    assert source.name == "the built-in study"
    assert open_study(None, seed=study.seed + 1)[0].seed == study.seed + 1
    with pytest.raises(InvalidStudyError):
        open_study(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"verbose": False, "quiet": False},
            "begin audit; then bank, bounds\nbegin optimum\ndone optimum 1.2 s\n",
        ),
        (
            {"verbose": True, "quiet": False},
            "begin audit; then bank, bounds\ndone audit 0.5 s\nbegin optimum\ndone optimum 1.2 s\n",
        ),
        ({"verbose": True, "quiet": True}, ""),
    ],
)
def test_progress_is_on_standard_error_also_in_a_file(capsys, options, told):
    """What begins and what is left, once; how long it took, if it was long."""
    progress = Progress(**options)
    for name, seconds in (("audit", 0.5), ("optimum", 1.25)):
        progress(name, None, ("bank", "bounds"))
        progress(name, seconds, ("bank", "bounds"))
    assert capsys.readouterr() == ("", told)
    progress.notice("look here")
    assert capsys.readouterr().err == ("" if options["quiet"] else "note: look here\n")


def test_a_text_steers_no_terminal():
    assert printable("gr\u00fcn \x1b[31m\x07\n\u202etxt") == "gr\u00fcn  [31m   txt"
    assert shown("[red]\x1b") == "\\[red] "


def test_rows_are_a_table_or_json(capsys):
    rows = [{"plant": "[b]real\x1b 1", "gap": float("inf")}]
    print_rows(rows, "[i]title", as_json=False)
    out = capsys.readouterr().out
    assert "[i]title" in out
    assert "[b]real  1" in out
    print_rows(rows, "", as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"plant": "[b]real\x1b 1", "gap": "inf"}]
