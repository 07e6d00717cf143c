import numpy as np
import pytest

from lqgap.experiments.adaptation import adapt, policy_of
from lqgap.experiments.plants import Plants
from lqgap.experiments.study import Adaptive
from lqgap.experiments.units import Workspace, judge

pytestmark = pytest.mark.slow  # all need a run


def test_the_record_tells_what_lqg_vtr_did(finished):
    _, record = finished
    assert record.method("vtr").kind == "adaptive"
    assert record.method("vtr").policy_file is None
    assert [part.plant for part in record.adaptations] == [plant.name for plant in record.real[:2]]
    for part in record.adaptations:
        assert part.times == list(range(9))
        assert len(part.regret) == len(part.model) == 9
        assert part.set_size[0] == 4
    (series,) = [s for s in record.horizons.series if s.method == "vtr"]
    assert series.kind == "regret + D_h"
    assert series.horizons == [4, 8, 12]


def test_regret_and_the_transient_bound_the_gap(small, tmp_path):
    workspace = Workspace(Plants(*small, trust=False), list(range(4)), tmp_path)
    options = Adaptive(runs=200)
    series = adapt(workspace, "vtr", options).series
    bound = series.values[series.horizons.index(8)]
    worst = judge(workspace, "vtr", policy_of(workspace, options), num_rollouts=200, idle=[]).gaps.grid_worst
    assert worst.mean <= bound.mean + 4 * np.hypot(worst.stderr, bound.stderr)
    assert bound.mean > 0
