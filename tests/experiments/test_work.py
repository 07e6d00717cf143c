import json
import warnings

import pytest

import lqgap as lg
from lqgap.experiments.record import Estimate
from lqgap.experiments.store import Store
from lqgap.experiments.work import Work, versions


def test_versions_name_what_results_depend_on():
    found = versions()
    assert found["lqgap"] == lg.__version__
    assert {"jax", "numpy", "python"} <= found.keys()
    json.dumps(found)


@pytest.mark.parametrize("value", [1 / 3, float("inf"), float("nan")])
def test_what_is_computed_is_what_is_found_later(small, tmp_path, value):
    store, told = Store(tmp_path / "store.sqlite"), []

    def compute(_):
        warnings.warn("be careful", lg.LqgapWarning, stacklevel=1)
        return Estimate(mean=value, stderr=0.0)

    works = [
        Work(*small, store, lambda name, seconds: told.append((name, seconds is None))) for _ in range(2)
    ]
    first, second = (work.do(Estimate, "work", {}, compute) for work in works)
    assert repr(first) == repr(second) == repr(compute_quietly(compute))
    assert told == [("work", True), ("work", False), ("work", False)]
    assert works[0].warnings == works[1].warnings == ["be careful"]
    assert works[0].timings == works[1].timings


def compute_quietly(compute):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compute(None)


def test_without_a_store_nothing_is_kept(small):
    values = iter([1.0, 2.0])
    work = Work(*small)
    found = [work.do(Estimate, "work", {}, lambda _: Estimate(mean=next(values), stderr=0.0)) for _ in "ab"]
    assert [each.mean for each in found] == [1.0, 2.0]
