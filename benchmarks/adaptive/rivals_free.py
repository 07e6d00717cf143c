"""Learners without a class, and those that know the operator: what they cost, and how that grows.

`python -m benchmarks.adaptive.rivals_free growth speed` puts these sections alone into docs/benchmarks.md.
"""

import functools
import sys
from collections.abc import Callable

import jax
import numpy as np

import lqgap as lg
from benchmarks.adaptive.rivals import pace
from benchmarks.timing import PAGE, put, table
from lqgap.adaptive import (
    AbstractLearner,
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
LEARNERS: dict[str, Callable[[UnknownPlant, int], AbstractLearner]] = {
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
# Mean, standard error and median of 20 runs of a prototype in NumPy with other noise, at 1e3 and 1e4 steps.
EXPECTED: dict[tuple[str, str], tuple[tuple[float, ...], ...]] = {
    ("certainty equivalence", "mass_spring_damper"): ((542, 55, 510), (709, 71, 640)),
    ("certainty equivalence", "dc_motor"): ((687, 140, 489), (947, 150, 884)),
    ("certainty equivalence", "web_server"): ((269, 42, 179), (1282, 260, 897)),
    ("certainty equivalence", "boeing_747"): ((9.5e4, 3.4e4, 3.8e4), (9.6e4, 3.4e4, 3.9e4)),
    ("LqgOpt", "mass_spring_damper"): ((748, 49), (892, 52)),
    ("LqgOpt", "dc_motor"): ((689, 130, 489), (1087, 240, 720)),
    ("LqgOpt", "web_server"): ((238, 26), (1003, 150, 834)),
    ("LqgOpt", "boeing_747"): ((8.6e4, 2.2e4, 4.8e4), (8.7e4, 2.2e4)),
    ("explore H^(2/3), commit", "mass_spring_damper"): ((1135, 73), (4711, 140)),
    ("explore H^(2/3), commit", "dc_motor"): ((1125, 96), (4187, 190)),
    ("explore H^(2/3), commit", "web_server"): ((198, 19), (752, 46)),
    ("explore H^(2/3), commit", "boeing_747"): ((1.13e5, 0.26e5), (5.0e5, 0.5e5)),
    ("AdaptOn", "mass_spring_damper"): ((1063, 110), (1455, 160)),
    ("AdaptOn", "dc_motor"): ((1322, 240, 817), (3426, 880, 1340)),
    ("AdaptOn", "web_server"): ((312, 17), (836, 110)),
    ("AdaptOn", "boeing_747"): ((2.7e5, 0.4e5), (3.8e5, 0.4e5)),
    ("AdaptOn as printed", "mass_spring_damper"): ((2704, 310), (9675, 570)),
    ("disturbance response, identified", "mass_spring_damper"): ((), (4349, 110)),
    ("disturbance response, identified", "dc_motor"): ((), (1.2e4, 8e3, 3197)),
    ("disturbance response, identified", "web_server"): ((), (820, 34)),
    ("Newton, innovations", "mass_spring_damper"): ((384, 46), (461, 46)),
    ("Newton, innovations", "dc_motor"): ((290, 28), (348, 31)),
    ("Newton, innovations", "web_server"): ((131, 6), (184, 8)),
    ("Newton, innovations", "boeing_747"): ((6.1e4, 0.8e4), (6.2e4, 0.8e4)),
    ("Newton, nature's y", "mass_spring_damper"): ((563, 41), (702, 45)),
    ("gradient, innovations", "mass_spring_damper"): ((694, 38), (1413, 41)),
    ("gradient, nature's y", "mass_spring_damper"): ((1685, 48), (7536, 150)),
    ("Newton, a stabiliser inside", "boeing_747"): ((676, 42), (1025, 47)),
}
HEADER = ["method", "plant", "1e3", "median", "1e4", "median", "slope 1e3..1e4", "guard trips", "a prototype"]


def run() -> str:
    """All sections."""
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


def tails() -> str:
    """What 20 runs say of a mean where a few of them carry it."""
    rows = []
    for label in ("certainty equivalence", "LqgOpt", "AdaptOn"):
        for name in ("dc_motor", "boeing_747"):
            plant = nominal(name)
            learner = LEARNERS[label](UnknownPlant.like(plant, window=WINDOW), HORIZONS[0])
            excess = _excess(_runs(learner, plant, HORIZONS[0], count=3 * NUM_RUNS), HORIZONS[0])
            groups = [f"{group.mean():.3g} ({np.median(group):.3g})" for group in excess.reshape(3, -1)]
            top = np.sort(excess)[-3:].sum() / excess.sum()
            known = EXPECTED[label, name][0]
            rows.append([label, name, *groups, _mean(excess), f"{100 * top:.0f} %", _against(excess, known)])
    note = f"Mean (median) excess of {HORIZONS[0]} steps, {NUM_RUNS} runs at a time, and of all of them."
    header = ["method", "plant", "first 20", "next 20", "last 20", "all 60", "share of the three largest"]
    return table("Learners without a class: tails", note, [*header, "a prototype"], rows)


def growth() -> str:
    """How excess grows up to 1e5 steps, against log^2 T and against powers of T."""
    plant, last = nominal("mass_spring_damper"), 100_000
    told, J, rows = UnknownPlant.like(plant, window=WINDOW), float(lg.solve(plant).J), []
    learners: dict[str, Callable[[int], AbstractPolicy]] = {
        label: functools.partial(LEARNERS[label], told)
        for label in ("certainty equivalence", "LqgOpt", "AdaptOn", "explore H^(2/3), commit")
    }
    learners["Newton, innovations"] = lambda _: DisturbanceResponse(plant, memory=10)
    for label, make in learners.items():
        is_tuned = "H^" in label
        runs = {span: _runs(make(span), plant, span, count=8) for span in (*HORIZONS, last) if is_tuned}
        long = runs.get(last) or _runs(make(last), plant, last, count=8)
        at = [_excess(runs.get(span, long), span) for span in (*HORIZONS, last)]
        means = [each.mean() for each in at]
        squares = np.diff(np.log([*HORIZONS, last]) ** 2)
        rows.append(
            [
                label,
                *map(_mean, at),
                *(f"{rise:.3g}" for rise in np.diff(means) / squares),
                f"{np.log10(means[-1] / means[0]) / 2:.2f}",
                f"{100 * means[-1] / (J * last):.2f} %",
            ]
        )
    note = (
        "mass_spring_damper, 8 runs. If it is linear in log^2 T both rises are alike; H^(2/3) has that slope."
    )
    header = ["method", "1e3", "1e4", "1e5", "rise per log^2 T to 1e4", "to 1e5", "slope 1e3..1e5", "of J H"]
    return table("Learners without a class: growth", note, header, rows)


def speed() -> str:
    """What a step costs, alone, and whether it grows."""
    plant, rows = nominal("mass_spring_damper"), []
    told = UnknownPlant.like(plant, window=WINDOW)
    for label, make in LEARNERS.items():
        took, flat = pace(make(told, HORIZONS[0]), plant)
        rows.append([label, f"{took:.1f}", f"{flat:.2f}"])
    note = "mass_spring_damper, one run of 5e4 steps, the fastest of three for each block; wanted: about 1."
    header = ["method", "us a step", "last tenth over the first"]
    return table("Learners without a class: speed", note, header, rows)


def nominal(name: str) -> LQG:
    """The plant in the middle of a family."""
    how = {"measured": "speed_and_attitude"} if name == "boeing_747" else {}
    return getattr(lg.plants, name)(**how).nominal()


def _runs(policy: AbstractPolicy, plant: LQG, horizon: int, *, count: int = NUM_RUNS) -> list[Trace]:
    keys = jax.random.split(jax.random.key(0), count)
    return run_many(policy, plant, horizon=horizon, keys=keys)


def _row(label: str, name: str, traces: list[list[Trace]]) -> list[str]:
    at = [_excess(some, horizon) for horizon, some in zip(HORIZONS, traces, strict=True)]
    cells = [text for last in at for text in (_mean(last), f"{np.median(last):.3g}")]
    trips = sum(int(trace.figures["trips"][-1]) for trace in traces[-1] if "trips" in trace.figures)
    slope = np.log10(at[1].mean() / at[0].mean())
    known = EXPECTED.get((label, name), ((), ()))
    against = ", ".join(filter(None, map(_against, at, known)))
    row = [label, name, *cells, f"{slope:.2f}", str(trips), against]
    print(" | ".join(row), flush=True)
    return row


def _excess(traces: list[Trace], horizon: int) -> np.ndarray:
    return np.asarray([trace.excess[np.searchsorted(trace.steps, horizon)] for trace in traces])


def _mean(excess: np.ndarray) -> str:
    return f"{excess.mean():.4g} +- {_stderr(excess):.2g}"


def _stderr(excess: np.ndarray) -> float:
    return float(excess.std(ddof=1) / np.sqrt(len(excess)))


def _against(excess: np.ndarray, known: tuple[float, ...]) -> str:
    """How far the mean is from the prototype's, in standard errors of both; and the ratio of medians."""
    if not known:
        return ""
    mean, stderr, *median = known
    apart = f"{mean:.4g} ({(excess.mean() - mean) / np.hypot(stderr, _stderr(excess)):+.1f} s.e."
    return apart + (f", median x {np.median(excess) / median[0]:.2f})" if median else ")")


SECTIONS = (knowing, unknown, tails, growth, speed)

if __name__ == "__main__":
    lg.enable_x64()
    for section in SECTIONS:
        if section.__name__ in (sys.argv[1:] or [each.__name__ for each in SECTIONS]):
            put(PAGE, section())
