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
def test_both_ways_of_training_meet_the_real_plants_and_pay_for_a_range_beside_them():
    options = TrainingOptions(steps=20, validation_rollouts=64, receipt_rollouts=16)
    family = lg.simulators.ParameterBox(
        lambda pole, gain: build(pole, gain, 1.0), {"pole": (0.5, 0.95), "gain": (0.2, 3.0)}
    )
    on, off = (
        gap_versus_width(
            family, [0.2], horizon=30, key=jax.random.key(0), shift=shift, points=2, options=options
        )
        for shift in (0.0, -0.8)
    )
    assert len(on.robust[0].mean) == 64
    for centred, beside in ((on.randomized, off.randomized), (on.robust, off.robust)):
        assert beside[0].worst > 1.5 * centred[0].worst
    assert on.to_json()["widths"] == [0.2]


def test_the_crossing_is_where_robust_training_begins_to_win_for_good():
    def estimates(*worst):
        zero, steps = np.zeros(1), np.zeros((1, 1))
        return tuple(
            GapEstimate(np.asarray([w]), zero, steps, steps, zero, num_rollouts=2, has_light_tail=False)
            for w in worst
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
