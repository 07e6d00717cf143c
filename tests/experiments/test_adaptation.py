import numpy as np
import pytest

from lqgap.experiments.adaptation import adapt, policy_of
from lqgap.experiments.judging import judge
from lqgap.experiments.plants import Plants
from lqgap.experiments.study import Adaptive
from lqgap.experiments.units import Workspace

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
    assert series.kind == "worst gap"
    assert series.horizons == [4, 8, 12]


def test_its_gap_is_measured_like_that_of_all_others(small, tmp_path):
    workspace = Workspace(Plants(*small, trust=False), list(range(4)), tmp_path)
    options = Adaptive(runs=50)
    series = adapt(workspace, "vtr", options).series
    grown = series.values[series.horizons.index(8)]
    policy, idle = policy_of(workspace, options), [np.inf] * len(workspace.is_solvable)
    worst = judge(workspace, "vtr", policy, num_rollouts=50, idle=idle, num_climbs=1).gaps.grid_worst
    # Noise is drawn for all steps at once, so it differs with the longest horizon.
    assert abs(worst.mean - grown.mean) < 5 * np.hypot(worst.stderr, grown.stderr)
    assert grown.mean > 0
