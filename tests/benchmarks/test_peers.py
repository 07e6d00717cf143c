"""The comparisons with other libraries can be made where those are not installed: rows say so."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.peers import control, filters, identification, peer, riccati, training

ABSENT = ("slycot", "control", "nfoursid", "sippy_unipi", "statsmodels", "dynamax", "filterpy")
ABSENT += ("stable_baselines3", "sb3_contrib")
TINY = {
    "riccati": (partial(riccati.run, sizes=(2,), count=2, num_timed=1), 2),
    "control": (control.run, 3),
    "identification": (
        partial(identification.run, names=["two_mass_spring"]),
        len(identification.PEERS),
    ),
    "filters": (partial(filters.run, names=["mass_spring_damper"]), len(filters.PEERS)),
    "training": (
        partial(training.run, num_rollouts=2, points=2, horizon=2, methods={}),
        len(training.SETTINGS),
    ),
}


@pytest.mark.parametrize("topic", TINY)
def test_a_peer_that_is_not_installed_has_rows_that_say_so(topic, monkeypatch):
    monkeypatch.setattr(peer, "ROUNDS", 1)
    for name in ABSENT:
        monkeypatch.setitem(sys.modules, name, None)
    run, count = TINY[topic]
    section = run()
    assert section.startswith("## Peers: ")
    assert section.count("| not installed |") == count


def test_a_module_of_its_own_that_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "filters_missing", None)
    assert peer.absence("filters_missing") == "not installed"
    assert peer.absence("json") == ""


def test_a_ratio_says_where_we_lose():
    assert peer.ratio(2.0, 1.0) == "2x"
    assert peer.ratio(1.0, 2.0) == "**0.5x: we lose**"


def test_records_are_read_by_their_headers(tmp_path):
    for index in range(2):
        (tmp_path / f"{index}.csv").write_text("t;u;y\n" + "".join(f"{t};{t};{2 * t}\n" for t in range(5)))
    measured = identification.Measured(tmp_path, inputs=["u"], outputs=["y"], order=1, every=2)
    (y, u), _ = measured.read()
    assert y.tolist() == [[-4], [0], [4]]
    assert u.tolist() == [[-2], [0], [2]]


def test_predictions_far_ahead_repeat_the_step(seed):
    rng = np.random.default_rng(seed)
    A, B, C, D, F = (0.3 * rng.normal(size=size) for size in ((3, 3), (3, 2), (2, 3), (2, 2), (3, 2)))
    y, u = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    x = np.zeros(3)
    for t in range(3):
        x = A @ x + B @ u[t] + F @ (y[t] - C @ x - D @ u[t])
    expected = C @ (A @ (A @ x + B @ u[3]) + B @ u[4]) + D @ u[5]
    predicted = identification.Model(A, B, C, D, F).predictions(y, u, 3)
    assert predicted.shape == (6, 2)
    np.testing.assert_allclose(predicted[3], expected, rtol=1e-12)
