"""How numbers are written: as many digits as are known, and the error in the same place.

show_estimate:   mean ± half of its interval, the error with one digit (two if it begins with 1), the mean as
                 far; both under one power of ten where they are large or small;
                 "a … b" where no interval is claimed: see `explain_ranges`
show:            three significant digits, a power of ten where zeros would have to be counted
"""

import math
from decimal import Decimal

from lqgap.experiments.record import Bracket, Estimate

FEWEST = 256  # that of `evaluation.tails`, whose package would load JAX

_LARGE, _SMALL = 6, -3  # exponents from which on, and below which, a power of ten is written
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def show(value: float | None, *, digits: int = 3) -> str:
    """A number without an error."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    exponent = int(exponent)
    if exponent >= _LARGE or exponent < _SMALL:
        return _power(exponent) if mantissa == "1" else f"{_signed(mantissa)}·{_power(exponent)}"
    return _signed(f"{value:.{max(digits - 1 - exponent, 0)}f}")


def show_estimate(estimate: Estimate | None, *, in_words: bool = False) -> str:
    """A mean with half of its interval, or a range of what runs cost; an exact one like any other number."""
    if estimate is None:
        return "–"
    if is_range(estimate):
        return _show_range(estimate, in_words=in_words)
    half = half_width(estimate)
    if not (math.isfinite(estimate.mean) and 0 < half < math.inf):
        return show(estimate.mean)
    exponent = math.floor(math.log10(max(abs(estimate.mean), half)))
    shift = exponent if exponent >= _LARGE or exponent < _SMALL else 0
    leading = f"{half:.1e}"
    last = int(leading.split("e")[1]) - (1 if leading[0] == "1" else 0) - shift  # place of the last digit
    if last < -_LARGE:  # the error is negligible
        return show(estimate.mean, digits=_LARGE)
    values = (float(Decimal(value).scaleb(-shift)) for value in (estimate.mean, half))
    mean, error = (f"{round(value, -last):.{max(-last, 0)}f}" for value in values)
    text = f"{_signed(mean)} ± {error}"
    return f"({text})·{_power(shift)}" if shift else text


def explain_ranges(num_rollouts: int) -> str:
    """What "a … b" means, and why there is no mean."""
    reason = f"runs are fewer than {FEWEST}, or a few of them cost far more than the others"
    if num_rollouts < FEWEST:
        reason = f"{num_rollouts} runs are too few to judge how heavy their tail is, {FEWEST} are needed"
    return (
        f"a … b: in half of the runs the extra cost to be expected of the inputs is at most a, in nine of "
        f"ten at most b. No mean can be given there: {reason}."
    )


def is_range(estimate: Estimate) -> bool:
    """Whether quantiles of runs are shown in place of a mean, which cannot be known."""
    return not estimate.has_interval and estimate.median is not None


def half_width(estimate: Estimate) -> float:
    """Of the interval around a mean, on its wider side; zero of exact values, and where none is claimed."""
    if estimate.low is None or estimate.high is None or math.isinf(estimate.mean):
        return 0.0
    return max(estimate.high - estimate.mean, estimate.mean - estimate.low)


def show_over(bracket: Bracket) -> str:
    """What the two ends of a bracket are over."""
    return "the ranges" if bracket.over == "ranges" else f"the {bracket.num_members} simulators"


def show_percent(part: float, whole: float) -> str | None:
    """A share of a positive whole, in per cent; None where there is none."""
    if not (math.isfinite(part) and math.isfinite(whole) and whole > 0):
        return None
    return f"{show(100 * part / whole, digits=2)} %"


def show_seconds(seconds: float) -> str:
    """A time that somebody waited."""
    if not 60 <= seconds < math.inf:
        return f"{show(seconds, digits=2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def _show_range(estimate: Estimate, *, in_words: bool) -> str:
    median, most = show(estimate.median), show(estimate.most)
    text = f"median {median}, 9 in 10 below {most}" if in_words else f"{median} … {most}"
    share = show(100 * estimate.diverged, digits=1)
    return f"{text}, {share} % diverge" if estimate.diverged > 0 else text


def _power(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def _signed(text: str) -> str:
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text.lstrip("-")
