import math

import numpy as np
import pytest

from lqgap.experiments import assembly
from lqgap.experiments.record import Estimate, MethodGaps
from lqgap.experiments.units import BOUND_TOLERANCE


def gaps(method, box, grid=None):
    def estimate(value):
        return None if value is None else Estimate(mean=value, stderr=0.1)

    real = Estimate(mean=-1.0, stderr=0.1)
    return MethodGaps(
        method=method,
        grid_worst=estimate(grid),
        grid_mean=None,
        box_worst=estimate(box),
        box_worst_at=None,
        real=[],
        real_worst=real,
        real_mean=real,
    )


def test_the_smallest_worst_gap_is_recommended_and_a_reference_never_is():
    parts = [gaps("nominal", 9.0), gaps("robust", 2.0), gaps("bank", math.inf), gaps("oracle", 0.0)]
    assert assembly._recommend(parts) == "robust"
    assert assembly._recommend([gaps("bank", None, 3.0), gaps("nominal", None, 2.0)]) == "nominal"
    assert assembly._recommend([gaps("oracle", 0.0)]) is None


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
    best = min(record.gaps.methods[:-1], key=lambda part: part.box_worst.mean)
    assert record.recommended == best.method
    heat = record.heat_map
    assert len(heat.maps) == 7
    grid = np.asarray(heat.maps[2].gap)
    assert grid.shape == (3, 3)
    assert grid.max() <= record.gaps.methods[2].box_worst.mean
    assert record.bracket.lower <= record.bracket.upper
    lower = record.horizons.series[-1]
    assert lower.method is None
    at_study = lower.values[lower.horizons.index(8)].mean
    np.testing.assert_allclose(at_study, record.bracket.lower, rtol=BOUND_TOLERANCE)
    assert len(record.trajectories) == 2 * 8
    assert {len(run.cost) for run in record.trajectories} == {9}
    assert [look.step for look in record.method("robust").history] == [0, 4]
