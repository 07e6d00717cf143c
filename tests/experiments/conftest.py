"""A small study, and what a run of it leaves."""

import pathlib

import pytest

from lqgap.experiments.parsing import parse_study
from lqgap.experiments.transfer import transfer

SMALL = (pathlib.Path(__file__).parent.parent / "support" / "small.toml").read_text()


@pytest.fixture(scope="session")
def small():
    """The study and its source."""
    return parse_study(SMALL, name="small.toml", folder=pathlib.Path())


@pytest.fixture(scope="session")
def finished(small, tmp_path_factory):
    """The folder of a run, and its record."""
    folder = tmp_path_factory.mktemp("run")
    return folder, transfer(*small, folder)
