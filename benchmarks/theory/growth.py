"""How the bound over ranges and the worst gap of a trained policy grow with the horizon."""

import jax
import numpy as np

import lqgap as lg
from benchmarks.theory.validity import POINTS
from benchmarks.timing import table
from lqgap.policies import ModelBank
from lqgap.simulators.family import AbstractFamily
from lqgap.theory.lower_bounds.van_trees.bound import van_trees_bound
from lqgap.training import TrainingOptions, train_robust

HORIZONS = (50, 200, 800)
# An answer of the prior to the adversary needs few updates; judged it is by the search.
OPTIONS = {"steps": 60, "validation_rollouts": 64, "receipt_rollouts": 128, "rounds": 1}


def run(horizons: tuple[int, ...] = HORIZONS) -> str:
    """One table: of the example study, with slopes against the logarithm of the horizon."""
    family = lg.plants.mass_spring_damper()
    bounds = [van_trees_bound(family, horizon=horizon, ends=False).value for horizon in horizons]
    worst = [_worst_gap(family, horizon) for horizon in horizons]
    rows = [
        [str(horizon), f"{low:.3g}", f"{high:.3g}", f"{high / low:.2f}", *slopes]
        for horizon, low, high, slopes in zip(
            horizons, bounds, worst, _slopes(horizons, bounds, worst), strict=True
        )
    ]
    between = f"{horizons[0]} and {horizons[-1]}"
    whole = _slope(horizons, bounds) / _slope(horizons, worst)
    note = (
        "mass_spring_damper, tasks that go on. At every horizon a bank is trained for the ranges and judged "
        "by a search of them, on fresh noise. Slopes are per unit of ln H, from the horizon before; between "
        f"{between} the ratio of the bound's to the bank's is {whole:.2f}."
    )
    header = ["H", "bound", "bank, worst found", "factor", "slope of the bound", "of the bank"]
    return table("Theory: growth with the horizon", note, header, rows)


def _worst_gap(family: AbstractFamily, horizon: int) -> float:
    key, key_search = jax.random.split(jax.random.key(0))
    bank = ModelBank(family.grid(POINTS[2]).systems)
    options = TrainingOptions(**OPTIONS)
    policy = train_robust(bank, family, horizon=horizon, key=key, options=options, ends=False).policy
    return lg.find_worst(policy, family, horizon=horizon, key=key_search, num_rollouts=128, ends=False).worst


def _slopes(horizons: tuple[int, ...], *series: list[float]) -> list[list[str]]:
    rows = [
        [f"{_slope(horizons[at : at + 2], values[at : at + 2]):.1f}" for values in series]
        for at in range(len(horizons) - 1)
    ]
    return [[""] * len(series), *rows]


def _slope(horizons: tuple[int, ...], values: list[float]) -> float:
    """Of the line between the ends."""
    return (values[-1] - values[0]) / float(np.log(horizons[-1] / horizons[0]))
