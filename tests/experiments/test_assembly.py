import numpy as np
import pytest
from example_record import example_record, measured

from lqgap.experiments.assembly import _sharpen, _too_few_members
from lqgap.experiments.bounds import BOUND_TOLERANCE
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.recommendation import Recommendation
from lqgap.experiments.results import WorstGap


@pytest.mark.slow
def test_the_parts_of_a_record_fit_together(finished):
    _, record = finished
    names = [method.name for method in record.methods]
    assert names == ["nominal", "linear", "bank", "randomized", "robust", "identify", "vtr", "oracle"]
    assert [plant.is_member for plant in record.real] == [True, True, False, False]
    assert [text.split()[0] for text in record.warnings[:2]] == ["given", "outside"]
    assert all("realizability" in text for text in record.warnings[:2])
    for part in record.gaps.methods:
        assert part.box_worst.mean >= part.grid_worst.mean
        assert part.real_worst.mean == max(e.mean for e in part.real)
    oracle = record.gaps.methods[-1]
    assert oracle.real_worst.mean == 0
    assert record.method(record.recommended).unfit is None
    heat = record.heat_map
    assert len(heat.maps) == 7
    grid = np.asarray(heat.maps[2].gap)
    assert grid.shape == (3, 3)
    assert np.all(np.isfinite(grid))
    assert record.bracket.lower <= record.bracket.upper
    [chosen] = [part for part in record.gaps.methods if part.method == record.recommended]
    assert chosen.box_worst == record.bracket.worst
    lower = record.horizons.series[-1]
    assert lower.method is None
    at_study = lower.values[lower.horizons.index(8)].mean
    np.testing.assert_allclose(at_study, record.bracket.lower, rtol=BOUND_TOLERANCE)
    assert len(record.trajectories) == 2 * 8
    assert {len(run.cost) for run in record.trajectories} == {9}
    assert [look.step for look in record.method("robust").history] == [0, 4]


def test_the_method_of_the_bracket_has_the_gaps_of_the_bracket_in_the_table():
    """23 ± 4 in the table beside "at most 24.7" were two figures of one policy."""
    record = example_record()
    part = next(part for part in record.gaps.methods if part.method == "robust")
    worst, of_class = measured(20.5, 0.05), measured(19.0, 0.05)
    found = WorstGap(worst=worst, worst_at={"gain": 2.0}, of_class=of_class, upper=20.7, num_plants=30)
    sharp = _sharpen(part, found)
    assert (sharp.box_worst, sharp.box_worst_at, sharp.grid_worst) == (worst, {"gain": 2.0}, of_class)
    assert sharp.real_worst == part.real_worst
    without_ranges = _sharpen(part.model_copy(update={"box_worst": None, "box_worst_at": None}), found)
    assert (without_ranges.box_worst, without_ranges.grid_worst) == (None, of_class)


@pytest.mark.parametrize(
    ("in_ranges", "of_class", "is_told"),
    [(0.0, 0.0, False), (0.01, 0.0, False), (0.1, 0.02, True), (0.1, 0.05, False)],
)
def test_more_members_are_asked_for_where_they_would_gain_something(tmp_path, in_ranges, of_class, is_told):
    """Gaps are parts of the smallest optimal cost."""
    study, _ = parse_study('horizon = 3\n[plant]\nfamily = "unknown_sign"', name="s.toml", folder=tmp_path)
    record = example_record()
    cost = min(plant.optimal_cost for plant in record.real)
    part = next(part for part in record.gaps.methods if part.method == "robust")
    part = part.model_copy(
        update={"box_worst": measured(in_ranges * cost, 0.0), "grid_worst": measured(of_class * cost, 0.0)}
    )
    told = _too_few_members(study, record.real, [part], Recommendation("robust"))
    assert bool(told) == is_told
