"""The command line in the process of the tests: what it prints, and how it ends."""

import os
import sys
import types

import pytest

from lqgap.cli.main import main


@pytest.fixture
def command(monkeypatch, capsys, as_users_run_it):  # noqa: ARG001
    """Runs `lqgap` with arguments as a user does; what it sets in the environment is undone."""
    before = dict(os.environ)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["lqgap", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return types.SimpleNamespace(returncode=ended.value.code, stdout=printed.out, stderr=printed.err)

    yield run
    os.environ.clear()
    os.environ.update(before)
