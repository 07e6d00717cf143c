import functools
import json

import jax
import numpy as np

import lqgap as lg
from lqgap.evaluation import WorstFound
from lqgap.policies import Zero
from lqgap.training import TrainingResult


@functools.cache
def members():
    return lg.simulators.Finite([lg.LQG([[a]], [[1.0]], [[1.0]]) for a in (0.5, 0.9)])


def test_a_receipt_adds_up_and_is_plain_json():
    gaps = lg.gap(
        Zero(num_inputs=1, num_outputs=1), members(), horizon=20, key=jax.random.key(0), num_rollouts=50
    )
    result = TrainingResult(
        policy=Zero(num_inputs=1, num_outputs=1),
        members=members(),
        weights=np.asarray([0.25, 0.75]),
        gaps=gaps,
        found=WorstFound(members(), gaps),
        history=(),
        num_skipped=0,
        is_converged=True,
        improvement=0.5,
    )
    receipt = json.loads(json.dumps(result.to_json()))
    assert receipt["worst_gap"] == gaps.mean[1]
    assert receipt["worst_interval"][0] < receipt["worst_gap"] < receipt["worst_interval"][1]
    np.testing.assert_allclose(
        receipt["optimality"], gaps.mean[1] - (0.25 * gaps.mean[0] + 0.75 * gaps.mean[1])
    )
    assert receipt["worst_in_ranges"] == receipt["worst_gap"]
    assert "member = 1" in receipt["worst_member"]
