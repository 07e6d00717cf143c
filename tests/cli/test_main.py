import subprocess
import sys

import pytest
from typer.testing import CliRunner

import lqgap
from lqgap.cli import main


def test_version_and_help():
    runner = CliRunner()
    assert runner.invoke(main.app, ["--version"]).output == f"lqgap {lqgap.__version__}\n"
    assert "solve" in runner.invoke(main.app, ["--help"]).output


def test_a_usage_error_exits_with_two():
    assert CliRunner().invoke(main.app, ["slove"]).exit_code == 2


def test_every_error_has_an_exit_code(monkeypatch):
    for kind, code in main.EXIT_CODES.items():

        def fail(kind=kind):
            raise kind("reason")

        monkeypatch.setattr(main, "app", fail)
        with pytest.raises(SystemExit) as stopped:
            main.main()
        assert stopped.value.code == code


def test_interruption_exits_with_130(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", interrupt)
    with pytest.raises(SystemExit) as stopped:
        main.main()
    assert stopped.value.code == 130


def test_it_runs_as_a_module():
    finished = subprocess.run(
        [sys.executable, "-m", "lqgap", "--version"], capture_output=True, text=True, check=True
    )
    assert finished.stdout.startswith("lqgap ")
