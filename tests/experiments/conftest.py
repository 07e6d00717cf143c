"""A small study, and what a run of it leaves."""

import pathlib

import pytest

from lqgap.experiments.parsing import parse_study
from lqgap.experiments.transfer import transfer

SMALL = """
horizon = 8
[plant]
family = "mass_spring_damper"
[grid]
points = 2
[methods]
nominal = {}
linear = {}
bank = {}
randomized = {steps = 4}
robust = {steps = 4}
identify = {probe = 2}
vtr = {runs = 2}
oracle = {}
[real]
count = 2
plants = [{stiffness = 9.0, gain = 2.0}]
outside = [{A = [[0.9]], B = [[0.5]], C = [[1.0]]}]
[evaluation]
rollouts = 16
horizons = [4, 8, 12]
map_points = 3
trajectories = 2
"""


@pytest.fixture(scope="session")
def small():
    """The study and its source."""
    return parse_study(SMALL, name="small.toml", folder=pathlib.Path())


@pytest.fixture(scope="session")
def finished(small, tmp_path_factory):
    """The folder of a run, and its record."""
    folder = tmp_path_factory.mktemp("run")
    return folder, transfer(*small, folder)
