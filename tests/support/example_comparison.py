"""A comparison with numbers made up by a formula, for pages and tables."""

import math

from lqgap.experiments.comparison import Cell, ClassOfPlants, Comparison, Contender, LeftOut, OnlineRun

EXCESS = {
    "bank": (10.0, 0.1),
    "map": (10.2, 0.1),
    "thompson{lazy = true}": (30.0, 0.2),
    "nominal": (2.0, 1.0),
}
EVIL = "<script>alert(1)</script>"


def example_comparison(*, family="springs", about="It does something."):
    """Excess a t^b with a little noise in common; Thompson sampling diverges once; identify is left out."""
    steps = [1, 10, 30, 100, 300, 1000]
    cells = [
        _cell(family, name, scale, power, [t for t in steps if t <= horizon])
        for name, (scale, power) in EXCESS.items()
        for horizon in (100, 1000)
    ]
    names = (*EXCESS, "identify")
    return Comparison(
        methods=[Contender(name=n, label=n.title(), kind="adaptive", description=about) for n in names],
        families=[
            ClassOfPlants(name=family, num_members=9, truths={"middle": "gain = 1", "lowest J": "gain = 2"})
        ],
        horizons=[100, 1000],
        seeds=[0, 1, 2, 3],
        cells=cells,
        left_out=[LeftOut(family=family, method="identify", reason="it needs more")],
    )


def _cell(family, name, scale, power, steps):
    def excess(t, seed, truth):
        wobble = 0.1 * math.sin(7 * seed + truth) + 0.1 * (-1) ** (seed + len(name))
        return scale * t**power * (1 + wobble)

    runs = [
        OnlineRun(
            truth=truth,
            member=place,
            seed=seed,
            excess=excess(steps[-1], seed, place),
            switches=seed if name != "nominal" else 0,
            stopped=0,
            faults=0,
            is_warming=False,
            diverged_at=7 if (name, seed, place) == ("thompson{lazy = true}", 1, 1) else None,
        )
        for place, truth in enumerate(("middle", "lowest J"))
        for seed in range(4)
    ]
    mean = [sum(excess(t, seed, place) for seed in range(4) for place in (0, 1)) / 8 for t in steps]
    return Cell(
        family=family,
        method=name,
        horizon=steps[-1],
        optimum=2.0,
        runs=runs,
        mean=mean[-1],
        stderr=0.02 * mean[-1],
        seconds_per_step=2e-6,
        steps=steps,
        growth=mean,
        growth_stderr=[0.02 * value for value in mean],
    )
