import math

import pytest

from lqgap.experiments.record import Estimate
from lqgap.report.numbers import show, show_estimate, show_percent, show_seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (27.04, "27.0"),
        (0.5, "0.500"),
        (1810.4, "1810"),
        (123456.0, "123456"),
        (999.7, "1000"),
        (-1.33, "−1.33"),
        (0.0, "0"),
        (-0.0, "0"),
        (3.1e17, "3.10·10¹⁷"),
        (2e-5, "2.00·10⁻⁵"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_a_number_has_three_digits_and_no_zeros_to_count(value, text):
    assert show(value) == text


@pytest.mark.parametrize(
    ("mean", "stderr", "text"),
    [
        (27.0431, 0.2, "27.0 ± 0.4"),
        (27.0431, 0.08, "27.04 ± 0.16"),
        (1234.5, 30.0, "1234 ± 60"),
        (0.0123, 0.001, "0.012 ± 0.002"),
        (-0.001, 0.2, "0.0 ± 0.4"),
        (5.0, 0.0, "5.00"),
        (math.inf, math.nan, "∞"),
        (4.2e9, 1e8, "4.20·10⁹ ± 2·10⁸"),
    ],
)
def test_an_error_of_two_standard_errors_ends_where_the_mean_ends(mean, stderr, text):
    assert show_estimate(Estimate(mean=mean, stderr=stderr)) == text


def test_what_was_not_measured_is_a_dash():
    assert show_estimate(None) == "–"


def test_a_share_needs_a_positive_whole():
    assert show_percent(15.0, 1000.0) == "1.5 %"
    assert show_percent(1.0, 0.0) is None
    assert show_percent(math.inf, 1.0) is None


def test_times_are_seconds_or_minutes():
    assert show_seconds(2.13) == "2.1 s"
    assert show_seconds(74.0) == "1 min 14 s"
    assert show_seconds(119.9) == "2 min 00 s"
