"""A record of believable shape with invented numbers: a fixture of the tests of reports, not a result."""

import json
import math
import random

from lqgap.experiments.record import (
    FORMAT,
    Adaptation,
    Audit,
    BoundRow,
    BoundsSheet,
    Bracket,
    Condition,
    Estimate,
    Event,
    GapMap,
    Gaps,
    HeatMap,
    HorizonStudy,
    Look,
    Margin,
    Method,
    MethodGaps,
    Parameter,
    Plant,
    Record,
    Response,
    Series,
    Signals,
    Trajectory,
)

STIFFNESS = Parameter(name="stiffness", unit="N/m", low=0.5, high=4.0)
GAIN = Parameter(name="gain", unit="N", low=1.0, high=5.0)
SIGNALS = Signals(dt=0.1, inputs=["voltage [V]"], outputs=["angle [rad]"], limits=[[-9.0, 9.0]], u0=[1.0])
SCALES = {
    "nominal": 95.0,
    "bank": 21.0,
    "robust": 14.0,
    "randomized": 16.0,
    "identify": 60.0,
    "vtr": 33.0,
    "truth": 0.0,
}
METHODS = {
    "nominal": ("LQG of the nominal plant", "fixed", "The optimal controller of the middle of all ranges."),
    "bank": ("Untrained bank", "fixed", "Filters of all members, weighed by how well they predict."),
    "robust": ("Robust training", "trained", "A bank trained for the smallest worst gap."),
    "randomized": ("Randomised training", "trained", "A bank trained for the smallest mean gap."),
    "identify": ("Identify, then control", "adaptive", "Random inputs first, then the optimum of a fit."),
    "vtr": ("LQG-VTR", "adaptive", "Acts on the most optimistic model that the data leave."),
    "truth": ("LQG that knows the truth", "reference", "The optimum of the real plant itself."),
}


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'>${{7*7}}{% x %}../../etc $\\frac$ %{y} role:ink"


def example_record(*, num_plants=8, horizon=60, **changes):
    """Everything a record can hold; `changes` replace parts of it."""
    dice = random.Random(0)  # noqa: S311
    plants = [_plant(dice, index) for index in range(1, num_plants + 1)]
    plants[-1] = Plant(name="worn spring", parameters={}, is_member=False, optimal_cost=231.0)
    gaps = Gaps(horizon=200, num_rollouts=256, methods=[_gaps(dice, name, plants) for name in METHODS])
    parts = dict(
        format=FORMAT,
        title="mass on a spring",
        study='horizon = 200\nseed = 0\n\n[plant]\nfamily = "mass_spring_damper"\nstiffness = [0.5, 4.0]\n',
        seed=0,
        precision="float64",
        versions={"lqgap": "0.1.0", "jax": "0.10.2", "python": "3.11"},
        parameters=[STIFFNESS, GAIN],
        warnings=["worn spring is outside of the family: realizability fails, and no bound covers it"],
        methods=[_method(name) for name in METHODS],
        real=plants,
        recommended="robust",
        audit=_audit(),
        gaps=gaps,
        horizons=HorizonStudy(series=_series(), over="ranges"),
        heat_map=_heat_map(),
        bracket=Bracket(
            method="robust",
            horizon=200,
            num_members=32,
            lower=9.4,
            kind="van-trees",
            set_by=["a prior that falls with stiffness and gain"],
            worst=measured(21.0, 0.14),
            upper=22.0,
            confidence=0.95,
            factor=22.0 / 9.4,
            over="ranges",
            bounds_class=False,
            reasons=["a controller that probes may learn faster than the bound allows for"],
        ),
        trajectories=[_run(dice, name, plant.name, horizon) for plant in plants[:2] for name in METHODS],
        responses=[_response("nominal", 0.3), _response("robust", 0.05)],
        adaptations=[_adaptation(plants[0].name)],
        bounds=_bounds(),
        timings={"audit": 2.1, "train robust": 31.4, "train randomized": 28.0, "gaps": 74.2},
    )
    return Record(**{**parts, **changes})


def measured(mean, stderr):
    """A mean with an interval."""
    return Estimate(mean=mean, stderr=stderr, low=mean - 2 * stderr, high=mean + 2 * stderr)


def heavy(mean):
    """Runs whose mean cannot be known."""
    return Estimate(mean=mean, stderr=mean, median=0.5 * mean, most=3 * mean, diverged=0.004)


def hostile_record():
    """Every text that a user can choose is an attack."""
    record = example_record(signals=SIGNALS)
    text = record.model_dump_json()
    for old in [
        *(label for label, _, _ in METHODS.values()),
        "mass on a spring",
        "real 1",
        "worn spring",
        "stiffness",
        "N/m",
        "voltage",
        "angle",
    ]:
        text = text.replace(old, json.dumps(EVIL + old)[1:-1])
    return type(record).model_validate_json(text)


def _plant(dice, index):
    stiffness, gain = dice.uniform(0.5, 4.0), dice.uniform(1.0, 5.0)
    return Plant(
        name=f"real {index}",
        parameters={"stiffness": stiffness, "gain": gain},
        is_member=True,
        optimal_cost=650 + 300 / gain + 40 * stiffness,
    )


def _method(name):
    label, kind, description = METHODS[name]
    trained = kind == "trained"
    history = [
        Look(
            stage=1 + (step > 100),
            step=step % 101,
            worst=18 + 60 * math.exp(-step / 50),
            mean=9 + 20 * math.exp(-step / 40) - (name == "randomized"),
            best=18 + 60 * math.exp(-step / 50),
        )
        for step in range(0, 200, 10)
    ]
    return Method(
        name=name,
        label=label,
        kind=kind,
        description=description,
        history=history if trained else [],
        policy_file=f"policies/{name}.safetensors" if kind != "reference" else None,
        margins=[Margin(kind="phase", value=34.5, plant="stiffness = 0.5 N/m")] if kind == "fixed" else [],
    )


def _gaps(dice, name, plants):
    scale = SCALES[name]
    estimate = heavy if name == "vtr" else lambda mean: measured(mean, 0.01 * scale)
    real = [estimate(scale * dice.uniform(0.4, 1.2)) for _ in plants]
    worst = max(real, key=lambda estimate: estimate.mean)
    mean = sum(estimate.mean for estimate in real) / len(real)
    return MethodGaps(
        method=name,
        grid_worst=estimate(1.4 * scale),
        grid_mean=estimate(0.7 * scale),
        box_worst=estimate(1.5 * scale),
        box_worst_at={"stiffness": 0.52, "gain": 4.9},
        real=real,
        real_worst=worst,
        real_mean=estimate(mean),
    )


def _series():
    horizons = [25, 50, 100, 200, 400, 800, 1600]
    shapes = {
        "robust": ("Robust training", "worst gap", lambda h: 12 + 1.3 * math.log(h)),
        "nominal": ("LQG of the nominal plant", "worst gap", lambda h: 0.7 * h),
        "bank": ("Untrained bank", "worst gap", lambda h: 17 + 2 * math.log(h)),
        "vtr": ("LQG-VTR", "worst gap", lambda h: 9 * math.sqrt(h)),
        None: ("certified lower bound", "lower bound", lambda h: 9.9 * (1 - math.exp(-h / 30))),
    }
    return [
        Series(
            method=method,
            label=label,
            kind=kind,
            horizons=horizons,
            values=[
                heavy(shape(h)) if method == "vtr" else measured(shape(h), 0.03 * shape(h) if method else 0.0)
                for h in horizons
            ],
        )
        for method, (label, kind, shape) in shapes.items()
    ]


def _heat_map():
    xs = [0.5 + 3.5 * step / 10 for step in range(11)]
    ys = [1.0 + 4.0 * step / 8 for step in range(9)]
    centres = {"nominal": (2.25, 3.0, 25.0), "bank": (2.0, 2.5, 4.0), "robust": (2.0, 4.0, 1.5)}
    maps = [
        GapMap(
            method=name,
            gap=[[3.0 + steep * ((x - cx) ** 2 + (y - cy) ** 2) for x in xs] for y in ys],
            is_mean=name != "bank",
        )
        for name, (cx, cy, steep) in centres.items()
    ]
    costs = [[650 + 300 / y + 40 * x for x in xs] for y in ys]
    return HeatMap(x=STIFFNESS, y=GAIN, x_values=xs, y_values=ys, held={}, optimal_cost=costs, maps=maps)


def _audit():
    return Audit(
        num_members=25,
        num_kept=24,
        actions=["1 member without a stationary optimum was pruned: stiffness 0.5, gain 1"],
        conditions=[
            Condition(
                assumption="A1",
                statement="open loop stable: rho(A) < 1",
                as_printed=True,
                repaired=True,
                value=0.931,
                margin=0.069,
                set_by="stiffness 4, gain 1",
                remedy="",
            ),
            Condition(
                assumption="A2",
                statement="closed loops contract: ||A - BK|| <= gamma_1 < 1",
                as_printed=False,
                repaired=True,
                value=2.33,
                margin=-1.33,
                set_by="stiffness 0.5, gain 5",
                remedy="holds with 0.90 in one weighted norm common to all members",
            ),
        ],
        constants={"N_K": 1.83, "N_P": 12.4, "gamma_1": 0.9},
    )


def _run(dice, name, plant, horizon):
    scale = 1 + SCALES[name] / 60
    wave = [scale * math.sin(step / 4) * math.exp(-step / 50) + dice.gauss(0, 0.5) for step in range(horizon)]
    return Trajectory(
        method=name,
        plant=plant,
        cost=[3 * value**2 + 1 for value in wave],
        u=[[-0.6 * value] for value in wave],
        y=[[value] for value in wave],
    )


def _response(name, overshoot):
    rest, steps = [[1.0]] * 20 + [[0.0]] * 10, list(range(30))
    swing = [[[wanted + overshoot * math.exp(-t / 5) * math.cos(t)] for t, [wanted] in enumerate(rest)]]
    figures = [("overshoot", overshoot), ("settling", math.inf if overshoot > 0.1 else 4.0)]
    return Response(
        method=name,
        plants=["the middle", "stiffness = 0.5, gain = 1"],
        steps=steps,
        follow=[0],
        reference=rest,
        y=[*swing, [[5.0 * t] for t in steps]],
        u=[*swing, [[1.0]] * 30],
        figures=[
            Margin(kind=kind, value=value, plant="stiffness = 0.5, gain = 1") for kind, value in figures
        ],
    )


def _adaptation(plant):
    times = list(range(0, 400, 10))
    return Adaptation(
        method="vtr",
        plant=plant,
        times=times,
        regret=[9 * math.sqrt(time) for time in times],
        set_size=[max(1, 25 - time // 12) for time in times],
        model=[f"stiffness {0.5 + time / 200:.2g}, gain 3" for time in times],
        switches=[40, 90, 210],
        events=[
            Event(time=20, text="warm-up ends, 25 models left"),
            Event(time=40, text="switch to stiffness 0.7, gain 3"),
        ],
    )


def _bounds():
    return BoundsSheet(
        title="Regret of LQG-VTR and gap of robust training",
        horizon=200,
        rows=[
            BoundRow(name="regret bound", printed=3.1e17, corrected=8.2e19, actual=4.4e9),
            BoundRow(name="D_h", printed=12.5, corrected=31.0, actual=None),
            BoundRow(name="nothing", printed=1810.0, corrected=1810.0, actual=1810.0),
        ],
        vacuous={"printed": True, "corrected": True, "actual": True},
    )
