import pytest

from lqgap.experiments import budgets
from lqgap.experiments.plants import Plants


def test_units_that_take_long_share_the_time_of_a_study(small):
    def seconds(name, **changes):
        plants = Plants(small[0].model_copy(update=changes), small[1], trust=False)
        return budgets.limit(plants, name)

    names = list(small[0].methods.chosen)
    trained = [name for name, method in small[0].methods.chosen.items() if method.kind == "trained"]
    units = [
        "class",
        "lower bound",
        *(f"train {name}" for name in trained),
        *(f"gaps {name}" for name in names),
    ]
    assert sum(seconds(unit, budget="10 h") for unit in units) == pytest.approx(36_000, rel=1e-3)
    assert seconds("lower bound", budget="none") == float("inf")
    assert seconds("audit", budget="1 min") == float("inf")
    assert seconds("class", budget="auto") < seconds("class", budget="auto", horizon=100_000)
