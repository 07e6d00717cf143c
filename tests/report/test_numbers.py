import math
import re

import hypothesis
import hypothesis.strategies as st
import pytest
from example_record import measured

from lqgap.evaluation import tails
from lqgap.experiments.record import Estimate
from lqgap.report import numbers
from lqgap.report.numbers import explain_ranges, show, show_estimate, show_percent, show_seconds


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
        (1234.5, 30.0, "1230 ± 60"),
        (0.0123, 0.001, "0.012 ± 0.002"),
        (-0.001, 0.2, "0.0 ± 0.4"),
        (5.0, 0.0, "5.00"),
        (math.inf, math.nan, "∞"),
        (4.2e9, 1e8, "(4.2 ± 0.2)·10⁹"),
        (6.7e21, 6.7e21, "(0.7 ± 1.3)·10²²"),
        (13122.0, 1074.0, "13000 ± 2000"),
        (1e9, 1.0, "1.00000·10⁹"),
        (2e-8, 1e-9, "(2.0 ± 0.2)·10⁻⁸"),
    ],
)
def test_an_error_ends_where_the_mean_ends(mean, stderr, text):
    assert show_estimate(measured(mean, stderr)) == text


@hypothesis.given(st.floats(allow_nan=False), st.floats(min_value=0, allow_nan=False))
def test_any_estimate_can_be_written_and_read_back_within_its_error(mean, stderr):
    text = show_estimate(measured(mean, stderr))
    if not math.isfinite(mean) or "±" not in text or not 1e-300 < abs(mean) < 1e300:
        return
    number, power = re.fullmatch(r"\(?(\S+) ± [\d.]+\)?(?:·10(\S+))?", text).groups()
    exponent = int((power or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    assert float(number.replace("−", "-")) * 10.0**exponent == pytest.approx(mean, abs=2 * stderr, rel=1e-9)


def test_the_wider_side_of_an_interval_is_shown():
    assert show_estimate(Estimate(mean=10.0, stderr=1.0, low=9.0, high=13.0)) == "10 ± 3"
    assert show_estimate(Estimate(mean=10.0, stderr=1.0, low=6.0, high=11.0)) == "10 ± 4"


def test_runs_without_a_mean_have_quantiles_and_shares():
    runs = Estimate(mean=1.3e6, stderr=1e6, median=31.0, most=4000.0, diverged=0.02)
    assert show_estimate(runs) == "31.0 … 4000, 2 % diverge"
    assert show_estimate(runs, in_words=True) == "median 31.0, 9 in 10 below 4000, 2 % diverge"
    assert show_estimate(runs.model_copy(update={"diverged": 0.0})) == "31.0 … 4000"
    assert "±" not in show_estimate(Estimate(mean=1.0, stderr=1.0))  # nothing is claimed


def test_where_no_mean_can_be_given_the_reason_is():
    assert "128 runs are too few" in explain_ranges(128)
    assert "256 are needed" in explain_ranges(128)
    assert "too few" not in explain_ranges(1024)


def test_a_power_of_ten_stands_alone():
    assert show(1e7, digits=1) == "10⁷"
    assert show(2e7, digits=1) == "2·10⁷"


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


def test_the_page_asks_for_as_many_runs_as_the_tails_need():
    assert numbers.FEWEST == tails.FEWEST
