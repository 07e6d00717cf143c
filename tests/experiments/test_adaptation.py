import numpy as np
import pytest

from lqgap.experiments.adaptation import adapt, judge
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
    assert series.kind == "regret + D_h"
    assert series.horizons == [4, 8, 12]


def test_regret_and_the_transient_bound_the_gap(small, tmp_path):
    workspace = Workspace(*small, tmp_path, trust=False)
    workspace.kept = list(range(4))
    options = Adaptive(runs=200)
    bounds = dict(zip((4, 8, 12), adapt(workspace, options)["worst"], strict=True))
    found = judge(workspace, options)
    worst = int(np.argmax(found["mean"]["grid"]))
    stderr = np.hypot(found["stderr"]["grid"][worst], bounds[8]["stderr"])
    assert found["mean"]["grid"][worst] <= bounds[8]["mean"] + 4 * stderr
    assert bounds[8]["mean"] > 0
