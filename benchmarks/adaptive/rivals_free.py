"""Learners without a class, and those that know the operator: what they cost, and how that grows."""

from collections.abc import Callable

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.adaptive import (
    AdaptOn,
    DisturbanceResponse,
    ExploreThenCommit,
    IdentifiedCertaintyEquivalence,
    IdentifiedDisturbanceResponse,
    LqgOpt,
    Trace,
    UnknownPlant,
    run_many,
)
from lqgap.policies import AbstractPolicy, StationaryLQG, Zero
from lqgap.systems import LQG

PLANTS = ("mass_spring_damper", "dc_motor", "web_server", "boeing_747")
WINDOW = 8
NUM_RUNS = 20
HORIZONS = (1_000, 10_000)
AS_PRINTED = {"update": "strong gradient", "feature": "nature"}
LEARNERS: dict[str, Callable[[UnknownPlant, int], AbstractPolicy]] = {
    "certainty equivalence": lambda told, _: IdentifiedCertaintyEquivalence(told),
    "the same, probing 0.3": lambda told, _: IdentifiedCertaintyEquivalence(told, probing=0.3),
    "LqgOpt": lambda told, _: LqgOpt(told),
    "explore H^(2/3), commit": lambda told, horizon: ExploreThenCommit(told, horizon=horizon),
    "AdaptOn": lambda told, _: AdaptOn(told),
    "AdaptOn as printed": lambda told, _: AdaptOn(told, **AS_PRINTED),
    "disturbance response, identified": lambda told, horizon: IdentifiedDisturbanceResponse(
        told, horizon=horizon
    ),
}
KNOWING: dict[str, dict[str, str]] = {
    "Newton, innovations": {},
    "Newton, nature's y": {"feature": "nature"},
    "gradient, innovations": {"update": "gradient"},
    "gradient, nature's y": {"update": "gradient", "feature": "nature"},
}
# Mean and standard error of the same methods in an independent prototype, at 1e3 and 1e4 steps.
EXPECTED = {
    ("certainty equivalence", "mass_spring_damper"): "542 +- 55, 709 +- 71",
    ("certainty equivalence", "dc_motor"): "687 +- 140, 947 +- 150",
    ("certainty equivalence", "web_server"): "269 +- 42, 1282 +- 260",
    ("certainty equivalence", "boeing_747"): "9.5e4 +- 3.4e4, 9.6e4",
    ("LqgOpt", "mass_spring_damper"): "748 +- 49, 892 +- 52",
    ("LqgOpt", "dc_motor"): "689 +- 130, 1087 +- 240",
    ("LqgOpt", "web_server"): "238 +- 26, 1003 +- 150",
    ("LqgOpt", "boeing_747"): "8.6e4 +- 2.2e4, 8.7e4",
    ("explore H^(2/3), commit", "mass_spring_damper"): "1135 +- 73, 4711 +- 140",
    ("explore H^(2/3), commit", "dc_motor"): "1125 +- 96, 4187 +- 190",
    ("explore H^(2/3), commit", "web_server"): "198 +- 19, 752 +- 46",
    ("explore H^(2/3), commit", "boeing_747"): "1.1e5 +- .3e5, 5.0e5 +- .5e5",
    ("AdaptOn", "mass_spring_damper"): "1063 +- 110, 1455 +- 160",
    ("AdaptOn", "dc_motor"): "1322 +- 240, 3426 +- 880",
    ("AdaptOn", "web_server"): "312 +- 17, 836 +- 110",
    ("AdaptOn", "boeing_747"): "2.7e5 +- .4e5, 3.8e5 +- .4e5",
    ("AdaptOn as printed", "mass_spring_damper"): "2704 +- 310, 9675 +- 570",
    ("Newton, innovations", "mass_spring_damper"): "384 +- 46, 461 +- 46",
    ("Newton, innovations", "dc_motor"): "290 +- 28, 348 +- 31",
    ("Newton, innovations", "web_server"): "131 +- 6, 184 +- 8",
    ("Newton, innovations", "boeing_747"): "6.1e4 +- .8e4, 6.2e4 +- .8e4",
    ("Newton, nature's y", "mass_spring_damper"): "563 +- 41, 702 +- 45",
    ("gradient, innovations", "mass_spring_damper"): "694 +- 38, 1413 +- 41",
    ("gradient, nature's y", "mass_spring_damper"): "1685 +- 48, 7536 +- 150",
    ("Newton, a stabiliser inside", "boeing_747"): "676 +- 42, 1025 +- 47",
}
HEADER = ["method", "plant", "1e3", "median", "1e4", "median", "slope 1e3..1e4", "guard trips", "a prototype"]


def run() -> str:
    """Both sections."""
    return "\n".join(section() for section in SECTIONS)


def unknown() -> str:
    """Learners that are told sizes and the cost."""
    rows = []
    for name in PLANTS:
        plant = nominal(name)
        told = UnknownPlant.like(plant, window=WINDOW)
        zero = Zero(num_inputs=plant.num_inputs, num_outputs=plant.num_outputs)
        rows.append(_row("zero input", name, [_runs(zero, plant, HORIZONS[-1])] * 2))
        for label, make in LEARNERS.items():
            policies = [make(told, horizon) for horizon in HORIZONS]
            is_tuned = "H^" in label or "identified" in label
            long = _runs(policies[-1], plant, HORIZONS[-1])
            rows.append(
                _row(label, name, [_runs(policies[0], plant, HORIZONS[0]) if is_tuned else long, long])
            )
    note = (
        f"Excess over the optimum, mean of {NUM_RUNS} runs with its standard error, and median; windows of "
        f"{WINDOW} lags. Those that explore for a share of the horizon are run for each of them."
    )
    return table("Learners without a class", note, HEADER, rows)


def knowing() -> str:
    """Disturbance response control of a known operator."""
    rows = []
    for name in PLANTS:
        plant = nominal(name)
        for label, how in KNOWING.items():
            found = _runs(DisturbanceResponse(plant, memory=10, **how), plant, HORIZONS[-1])
            rows.append(_row(label, name, [found, found]))
    plant = nominal("boeing_747")
    other = StationaryLQG(lg.plants.boeing_747(measured="speed_and_attitude").grid(2)[0], filters="steady")
    found = _runs(DisturbanceResponse(plant, memory=10, stabilizer=other), plant, HORIZONS[-1])
    rows.append(_row("Newton, a stabiliser inside", "boeing_747", [found, found]))
    note = f"As above, with the operator known and ten taps; {NUM_RUNS} runs."
    return table("Disturbance response control", note, HEADER, rows)


def nominal(name: str) -> LQG:
    """The plant in the middle of a family."""
    how = {"measured": "speed_and_attitude"} if name == "boeing_747" else {}
    return getattr(lg.plants, name)(**how).nominal()


def _runs(policy: AbstractPolicy, plant: LQG, horizon: int) -> list[Trace]:
    keys = jax.random.split(jax.random.key(0), NUM_RUNS)
    return run_many(policy, plant, horizon=horizon, keys=keys)


def _row(label: str, name: str, traces: list[list[Trace]]) -> list[str]:
    cells, means = [], []
    for horizon, some in zip(HORIZONS, traces, strict=True):
        last = np.asarray([trace.excess[np.searchsorted(trace.steps, horizon)] for trace in some])
        means.append(last.mean())
        cells += [
            f"{last.mean():.4g} +- {last.std(ddof=1) / np.sqrt(len(last)):.2g}",
            f"{np.median(last):.3g}",
        ]
    trips = sum(int(trace.figures["trips"][-1]) for trace in traces[-1] if "trips" in trace.figures)
    slope = np.log10(means[1] / means[0])
    row = [label, name, *cells, f"{slope:.2f}", str(trips), EXPECTED.get((label, name), "")]
    print(" | ".join(row), flush=True)
    return row


SECTIONS = (knowing, unknown)

if __name__ == "__main__":
    lg.enable_x64()
    for section in SECTIONS:
        print(section(), flush=True)
