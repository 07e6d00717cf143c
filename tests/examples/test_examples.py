"""Every example runs and draws its picture, at a small size."""

import runpy
import sys
from pathlib import Path

import jax
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from lqgap.experiments.parsing import read_study
from lqgap.experiments.plants import Plants

LONG = {"gap_against_horizon", "robust_training"}
FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
MAX_LINES = 60


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else []) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_an_example_draws_a_picture(path, tmp_path, monkeypatch):
    picture = tmp_path / "picture.png"
    monkeypatch.setenv("EXAMPLE_SIZE", "small")
    monkeypatch.setattr(sys, "argv", [str(path), str(picture)])
    mpl.use("Agg")
    with jax.numpy_rank_promotion("allow"):
        runpy.run_path(str(path))
    assert any(axes.has_data() for axes in plt.gcf().axes)
    plt.close("all")
    assert picture.stat().st_size > 5_000


def test_there_are_ten_and_they_are_short():
    assert len(EXAMPLES) == 10
    assert all(len(path.read_text().splitlines()) <= MAX_LINES for path in EXAMPLES)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.name)
def test_a_study_is_read_and_its_plants_are_built(path):
    plants = Plants(*read_study(path), trust=False)
    assert np.all(np.isfinite(np.asarray(plants.members.systems.A)))
