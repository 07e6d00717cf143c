import numpy as np
import pytest

from lqgap.experiments.adaptation import NUM_POINTS, adapt
from lqgap.experiments.judging import judge
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.vtr import VTR
from lqgap.experiments.plants import Plants
from lqgap.experiments.units import Workspace, by_horizon

pytestmark = pytest.mark.slow  # all need a run


@pytest.fixture
def workspace(small, tmp_path):
    return Workspace(Plants(*small, trust=False), list(range(4)), tmp_path)


def test_the_record_tells_what_lqg_vtr_did(finished):
    _, record = finished
    assert record.method("vtr").kind == "adaptive"
    assert record.method("vtr").policy_file is not None
    assert [part.plant for part in record.adaptations] == [plant.name for plant in record.real[:2]]
    for part in record.adaptations:
        assert part.times == list(range(9))
        assert len(part.regret) == len(part.model) == 9
        assert part.set_size[0] > 1
        assert all(text.startswith("stiffness = ") for text in part.model)
        assert set(part.figures) >= {"J", "misfit"}
    (series,) = [s for s in record.horizons.series if s.method == "vtr"]
    assert series.kind == "worst gap"
    assert series.horizons == [4, 8, 12]


def test_a_policy_that_tells_nothing_has_its_regret_told(workspace):
    bank = workspace.make("bank", METHODS["bank"](), None).policy
    for part in adapt(workspace, "bank", bank).runs:
        assert len(part.regret) == len(part.times) <= NUM_POINTS
        assert np.all(np.isfinite(part.regret))
        assert part.set_size is part.model is None
        assert (part.figures, part.switches, part.events) == ({}, [], [])


def test_its_gap_is_measured_like_that_of_all_others(workspace):
    policy = workspace.make("vtr", VTR(family=False), None).policy
    series = by_horizon(workspace, "vtr", policy, num_rollouts=50).series
    grown = series.values[series.horizons.index(8)]
    idle = [np.inf] * len(workspace.is_solvable)
    worst = judge(workspace, "vtr", policy, num_rollouts=50, idle=idle, num_climbs=1).gaps.grid_worst
    # Noise is drawn for all steps at once, so it differs with the longest horizon.
    assert abs(worst.mean - grown.mean) < 5 * np.hypot(worst.stderr, grown.stderr)
    assert grown.mean > 0
