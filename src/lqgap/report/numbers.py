"""How numbers are written: as many digits as are known, and the error in the same place.

show_estimate:   mean ± 2 stderr ,   the error with one digit (two if it begins with 1), the mean as far
show:            three significant digits, a power of ten where zeros would have to be counted
"""

import math

from lqgap.experiments.record import Estimate

NUM_STDERR = 2  # half of an interval, in standard errors: about 95 %

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def show(value: float | None, *, digits: int = 3) -> str:
    """A number without an error."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if exponent >= 6 or exponent < -3:
        return _with_power(value, exponent, digits)
    return _signed(f"{value:.{max(digits - 1 - exponent, 0)}f}")


def show_estimate(estimate: Estimate | None) -> str:
    """A mean with half of its interval; an exact one like any other number."""
    if estimate is None:
        return "–"
    if not math.isfinite(estimate.mean) or not math.isfinite(estimate.stderr) or estimate.stderr <= 0:
        return show(estimate.mean)
    half = NUM_STDERR * estimate.stderr
    leading = f"{half:.1e}"
    last = int(leading.split("e")[1]) - (1 if leading[0] == "1" else 0)  # decimal place of the last digit
    if last < -6 or max(abs(estimate.mean), half) >= 1e6:
        return f"{show(estimate.mean)} ± {show(half, digits=1)}"
    places = max(-last, 0)
    return f"{_signed(f'{estimate.mean:.{places}f}')} ± {half:.{places}f}"


def show_percent(part: float, whole: float) -> str | None:
    """A share of a positive whole, in per cent; None where there is none."""
    if not (math.isfinite(part) and math.isfinite(whole) and whole > 0):
        return None
    return f"{show(100 * part / whole, digits=2)} %"


def show_seconds(seconds: float) -> str:
    """A time that somebody waited."""
    if seconds < 60:
        return f"{show(seconds, digits=2)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def _with_power(value: float, exponent: int, digits: int) -> str:
    mantissa = _signed(f"{value / 10.0**exponent:.{digits - 1}f}")
    return f"{mantissa}·10{str(exponent).translate(_SUPERSCRIPTS)}"


def _signed(text: str) -> str:
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text.lstrip("-")
