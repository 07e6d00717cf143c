"""One of each policy, on one small class, for tests that all of them must pass."""

import functools

import jax
import numpy as np

import lqgap as lg
from lqgap import policies

HORIZON = 12
NAMES = (
    "StationaryLQG",
    "FiniteHorizonLQG",
    "LinearDynamic",
    "static",
    "ClippedHistory",
    "free taps",
    "ModelBank mixture",
    "ModelBank map",
    "ModelBank thompson",
    "ModelBank steady filters",
    "Committed",
    "BoundedChanges",
    "Integrated",
    "DualBank",
    "Recurrent",
    "Zero",
    "ProbingBank",
    "RandomProbe",
    "Saturated",
)
PLANTS = [
    lg.LQG([[0.9, 0.2], [-0.1, 0.7]], [[0.0], [gain]], [[1.0, 0.0], [0.3, 1.0]], Q=np.eye(2), R=[[0.5]])
    for gain in (0.6, 1.0, 1.4)
]


@functools.cache
def systems():
    """The class as a batch."""
    return lg.stack(PLANTS)


@functools.cache
def make_policies():
    """Name to policy: two outputs, one input."""
    key = jax.random.key(0)
    bank = policies.ModelBank(systems(), horizon=HORIZON)
    linear = policies.LinearDynamic([[0.5]], [[0.1, 0.2]], [[-0.3]], [[-0.2, 0.1]])
    recurrent = policies.Recurrent(num_inputs=1, num_outputs=2, width=4, key=key)
    return {
        "StationaryLQG": policies.StationaryLQG(PLANTS[1]),
        "FiniteHorizonLQG": policies.FiniteHorizonLQG(PLANTS[1], HORIZON),
        "LinearDynamic": linear,
        "static": policies.LinearDynamic(Dc=[[-0.2, 0.1]]),
        "ClippedHistory": policies.ClippedHistory.from_plant(PLANTS[1], length=3),
        "free taps": policies.ClippedHistory(np.full((2, 1, 2), -0.1), np.full((2, 1, 1), 0.1)),
        "ModelBank mixture": bank,
        "ModelBank map": policies.ModelBank(systems(), horizon=HORIZON, mode="map"),
        "ModelBank thompson": policies.ModelBank(systems(), mode="thompson"),
        "ModelBank steady filters": policies.ModelBank(systems(), horizon=HORIZON, filters="steady"),
        "Committed": policies.Committed(bank, 4),
        "BoundedChanges": policies.BoundedChanges(bank, (-0.2, 0.4)),
        "Integrated": policies.Integrated(bank),
        "DualBank": policies.DualBank(systems(), horizon=HORIZON),
        "Recurrent": jax.tree.map(lambda x: x + 0.1 if hasattr(x, "dtype") else x, recurrent),
        "Zero": policies.Zero(num_inputs=1, num_outputs=2),
        "ProbingBank": policies.ProbingBank(systems(), horizon=HORIZON, probe=0.3),
        "RandomProbe": policies.RandomProbe(3, bank),
        "Saturated": policies.Saturated(bank, (-0.2, 0.4, 0.3)),
    }
