"""A small study, and what a run of it leaves."""

import pathlib

import pytest

from lqgap.experiments.parsing import parse_study
from lqgap.experiments.transfer import transfer
from lqgap.theory.lower_bounds import ranges

SMALL = (pathlib.Path(__file__).parent.parent / "support" / "small.toml").read_text()


@pytest.fixture(scope="session")
def small():
    """The study and its source."""
    return parse_study(SMALL, name="small.toml", folder=pathlib.Path())


@pytest.fixture(scope="session")
def finished(small, tmp_path_factory):
    """The folder of a run, and its record."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "BOUNDS", {})
        return folder, transfer(*small, folder)


@pytest.fixture(autouse=True)
def fast_bounds(monkeypatch):
    """Bounds of members only: those of ranges take half a minute, and have tests of their own."""
    monkeypatch.setattr(ranges, "BOUNDS", {})
    monkeypatch.setattr("lqgap.experiments.bounds.release_memory", lambda **_: None)  # programs are shared
