import numpy as np
import pytest

from lqgap.errors import LqgapWarning
from lqgap.evaluation import GapEstimate
from lqgap.evaluation.estimate import DIVERGED
from lqgap.experiments.fitness import find_trouble

VALUE = np.array([10.0, 20.0, 30.0])


def estimate(mean, stderr=0.0, totals=None):
    mean = np.array(mean)
    return GapEstimate(
        mean=mean,
        stderr=np.full(3, stderr),
        totals=np.stack([mean, mean], axis=1) if totals is None else np.array(totals),
        per_step=mean[:, None],
        value=VALUE,
        num_rollouts=2,
        has_light_tail=False,
    )


def trouble(mean, stderr=0.0, idle=(100.0, 100.0, 100.0), totals=None):
    return find_trouble(estimate(mean, stderr, totals), np.array(idle), "plant {}".format)


def test_nothing_speaks_against_a_method_that_holds_and_beats_zero_input():
    assert trouble([1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize("gap", [np.inf, 1.01 * DIVERGED * 20.0])
def test_a_plant_on_which_it_diverges_is_named(gap):
    assert trouble([1.0, gap, 3.0], idle=[1e9] * 3) == "it diverges on 1 of 3 plants, such as plant 1"


def test_a_single_run_that_diverges_is_enough_and_the_plant_with_most_of_them_is_named():
    totals = [[1.0, 1.0, 1e5], [1.0, 1e5, 1e5], [1.0, 1.0, 1.0]]
    assert trouble([9.0, 9.0, 9.0], totals=totals).endswith("on 2 of 3 plants, such as plant 1")


def test_a_method_surely_worse_than_zero_input_is_useless_and_one_within_the_noise_is_not():
    assert trouble([101.0, 1.0, 1.0], stderr=0.1).startswith("no input at all is as good or better on 1 of 3")
    assert trouble([101.0, 1.0, 1.0], stderr=1.0) is None


def test_where_zero_input_leaves_little_to_gain_to_be_worse_than_it_is_no_fault():
    assert trouble([3.0, 2.0, 2.0], stderr=0.1, idle=[0.4, 100.0, 100.0]) is None
    assert "plant 0" in trouble([3.0, 2.0, 2.0], stderr=0.1, idle=[0.6, 100.0, 100.0])


def test_a_method_that_never_acts_is_useless_unless_that_is_optimal():
    assert "plant 2" in trouble([1.0, 1.0, 50.0], stderr=5.0, idle=[100.0, 100.0, 50.0])
    assert trouble([0.0, 1.0, 1.0], idle=[0.0, 100.0, 100.0]) is None


def test_runs_that_are_lost_by_whoever_knows_the_plant_speak_against_nobody():
    lost = [[1.0, 1.0, 1e5], [1.0, 1e5, 1e5], [1.0, 1.0, 1.0]]
    found, idle = estimate([9.0, 1e5, 9.0], totals=lost), np.full(3, 1e9)

    def judge(*anyway):
        return find_trouble(
            found, idle, "plant {}".format, lambda row: np.array(anyway) & (found.totals[row] > 1e4)
        )

    assert judge(False, False, True).endswith("on 2 of 3 plants, such as plant 1")
    assert "plant 1; not even the controller that knows it" in judge(False, True, True)
    found.totals[1] = found.totals[0]
    with pytest.warns(LqgapWarning, match=r"limits of inputs are tight: on 2 of 3 plants, such as plant"):
        assert judge(False, True, True) is None
