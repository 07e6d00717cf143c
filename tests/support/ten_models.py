"""The class of ten models whose constants are known from independent code, in `golden`."""

import json

import golden

import lqgap
from lqgap.simulators import Finite

GOLDEN = json.loads((golden.FOLDER / "theory_constants.json").read_text())


def ten_models():
    plants = [
        lqgap.LQG([[a, 0.2], [0, 0.5]], [[0], [b]], [[1, 0]])
        for a in (0.6, 0.7, 0.8)
        for b in (0.7, 1.0, 1.3)
    ]
    return Finite([*plants, lqgap.LQG([[0.75, 0.2], [0, 0.5]], [[0], [1.1]], [[1, 0.3]])])
