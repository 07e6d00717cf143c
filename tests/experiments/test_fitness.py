import numpy as np
import pytest

from lqgap.experiments.fitness import LARGE, find_trouble

VALUE = np.array([10.0, 20.0, 30.0])


def trouble(mean, stderr=0.0, idle=(100.0, 100.0, 100.0)):
    return find_trouble(np.array(mean), np.full(3, stderr), VALUE, np.array(idle), "plant {}".format)


def test_nothing_speaks_against_a_method_that_holds_and_beats_zero_input():
    assert trouble([1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize("gap", [np.inf, np.nan, 1.01 * LARGE * 20.0])
def test_a_plant_on_which_it_diverges_is_named(gap):
    assert trouble([1.0, gap, 3.0], idle=[1e9] * 3) == "it diverges on 1 of 3 plants, such as plant 1"


def test_of_several_plants_the_worst_in_units_of_its_optimal_cost_is_named():
    assert trouble([2e3, 1e4, 1e4]).endswith("on 3 of 3 plants, such as plant 1")


def test_a_method_surely_worse_than_zero_input_is_useless_and_one_within_the_noise_is_not():
    assert trouble([101.0, 1.0, 1.0], stderr=0.1).startswith("no input at all is as good or better on 1 of 3")
    assert trouble([101.0, 1.0, 1.0], stderr=1.0) is None


def test_a_method_that_never_acts_is_useless_unless_that_is_optimal():
    assert "plant 2" in trouble([1.0, 1.0, 50.0], stderr=5.0, idle=[100.0, 100.0, 50.0])
    assert trouble([0.0, 1.0, 1.0], idle=[0.0, 100.0, 100.0]) is None
