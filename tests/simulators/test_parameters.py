import numpy as np
import pytest

from lqgap.errors import InvalidArgumentError
from lqgap.simulators.parameters import Parameter, read_parameter, read_values, require_names


def test_a_pair_is_an_interval_and_a_list_a_choice():
    interval, choice = read_parameter("k", (1, 3), "N/m"), read_parameter("delay", [0, 2, 3])
    assert interval == Parameter("k", 1.0, 3.0, "N/m")
    np.testing.assert_allclose(interval.points(3), [1, 2, 3])
    np.testing.assert_allclose(choice.points(99), [0, 2, 3])
    assert (interval.middle, choice.middle) == (2.0, 2.0)
    assert (interval.admits(2.5), choice.admits(2.5), choice.admits(2.0)) == (True, False, True)
    assert (str(interval), str(choice)) == ("k = 1 .. 3 N/m", "delay = {0, 2, 3}")


def test_an_interval_of_no_width_has_one_point():
    np.testing.assert_allclose(read_parameter("k", (2, 2)).points(5), [2])


BAD = [(3, 1), (1,), (1, 2, 3), (np.nan, 1), (0, np.inf), "12", [], None, 5, ("a", "b"), (True, 2)]


@pytest.mark.parametrize("extent", BAD, ids=str)
def test_a_malformed_extent_names_the_parameter(extent):
    with pytest.raises(InvalidArgumentError, match="parameter mass"):
        read_parameter("mass", extent)


def test_values_are_read_by_name_or_in_order_and_must_lie_inside():
    parameters = (Parameter("k", 0.0, 1.0), Parameter("gain", 1.0, 5.0))
    np.testing.assert_allclose(read_values(parameters, {"gain": 2, "k": 0.5}), [0.5, 2])
    np.testing.assert_allclose(read_values(parameters, [1, 5]), [1, 5])
    for theta, message in (
        ({"gian": 2, "k": 0}, "no parameter 'gian', only k, gain; did you mean gain"),
        ({"k": 0.5}, "one value for each of k, gain"),
        ([1, 9], r"gain = 9, outside of gain = 1 \.\. 5"),
        ("k", "expected numbers for k, gain"),
        ([1], "one value for each"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            read_values(parameters, theta)


def test_names_far_from_all_get_no_hint():
    with pytest.raises(InvalidArgumentError, match=r"only k$"):
        require_names(["viscosity"], ["k"])
