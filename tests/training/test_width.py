import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation import GapEstimate
from lqgap.training import TrainingOptions, WidthCurve, gap_versus_width
from lqgap.training.width import resize


def build(pole, gain, sign):
    return lg.LQG([[pole]], [[sign * gain]], [[1.0]])


FAMILY = lg.simulators.ParameterBox(build, {"pole": (0.5, 0.9), "gain": (1.0, 2.0), "sign": [-1, 1]})


def test_a_range_is_widened_and_moved_and_choices_stay():
    pole, gain, sign = resize(FAMILY, 0.5, shift=1.0).parameters
    np.testing.assert_allclose([pole.low, pole.high, gain.low, gain.high], [0.8, 1.0, 1.75, 2.25])
    assert sign.choices == (-1, 1)


@pytest.mark.slow
def test_both_ways_of_training_meet_the_real_plants_at_every_width():
    options = TrainingOptions(steps=20, validation_rollouts=64, receipt_rollouts=16)
    family = lg.simulators.ParameterBox(
        lambda pole, gain: build(pole, gain, 1.0), {"pole": (0.5, 0.95), "gain": (0.2, 3.0)}
    )
    curve = gap_versus_width(family, [0.2, 1.0], horizon=10, key=jax.random.key(0), points=2, options=options)
    assert [len(estimate.mean) for estimate in curve.robust] == [64, 64]
    # A range of a fifth leaves most real plants out.
    assert curve.randomized[0].worst > curve.randomized[1].worst
    assert curve.to_json()["widths"] == [0.2, 1.0]


def test_the_crossing_is_where_robust_training_begins_to_win_for_good():
    def estimates(*worst):
        zero = np.zeros(1)
        return tuple(
            GapEstimate(np.asarray([w]), zero, np.zeros((1, 1)), zero, w, 0.0, num_rollouts=2) for w in worst
        )

    widths = np.asarray([1.0, 2.0, 3.0, 4.0])
    for robust, expected in (((1, 9, 1, 1), 3.0), ((1, 1, 1, 1), 1.0), ((1, 1, 1, 9), None)):
        curve = WidthCurve(widths, estimates(5.0, 5.0, 5.0, 5.0), estimates(*map(float, robust)))
        assert curve.crossing == expected


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="width"):
        resize(FAMILY, -1.0)
    with pytest.raises(lg.InvalidArgumentError, match="ParameterBox"):
        resize("all", 1.0)
