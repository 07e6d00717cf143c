"""The command line in the process of the tests, and a study so small that every command runs in seconds."""

import contextlib
import errno
import os
import sys
import types

import pytest

import lqgap as lg
from lqgap.cli.main import main
from lqgap.theory.lower_bounds import ranges

TINY = """
horizon = 4
budget = "none"
[plant]
family = "unknown_sign"
[methods]
bank = {}
robust = {policy = "bank", steps = 2}
[real]
count = 1
plants = [{sign = -1}]
[evaluation]
rollouts = 16
"""


@pytest.fixture(autouse=True)
def fast_bounds(monkeypatch):
    """Bounds of members only: those of ranges take half a minute, and have tests of their own."""
    monkeypatch.setattr(ranges, "BOUNDS", {})
    monkeypatch.setattr("lqgap.experiments.bounds.release_memory", lambda **_: None)  # programs are shared


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


@pytest.fixture
def full_disk(monkeypatch):
    """Inside of it the disk is full for files of these names: what is written to them is cut."""
    fsync = os.fsync

    @contextlib.contextmanager
    def fill(*names):
        def fail(number):
            if any(name in os.readlink(f"/proc/self/fd/{number}") for name in names):
                os.ftruncate(number, 7)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(number)

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail)
            yield

    return fill


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def policy(tmp_path):
    """The file of a policy that fits the study."""
    path = tmp_path / "bank.safetensors"
    lg.save_policy(path, lg.policies.ModelBank(lg.plants.unknown_sign().grid(2).systems, horizon=4))
    return path
