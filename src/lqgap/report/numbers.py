"""How numbers are written: as many digits as are known, and the error in the same place.

show_estimate:   mean ± 2 stderr, the error with one digit (two if it begins with 1), the mean as far;
                 both under one power of ten where they are large or small
show:            three significant digits, a power of ten where zeros would have to be counted
"""

import math

from lqgap.experiments.record import Estimate

NUM_STDERR = 2  # half of an interval, in standard errors: about 95 %

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
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if exponent >= _LARGE or exponent < _SMALL:
        return _with_power(value, exponent, digits)
    return _signed(f"{value:.{max(digits - 1 - exponent, 0)}f}")


def show_estimate(estimate: Estimate | None) -> str:
    """A mean with half of its interval; an exact one like any other number."""
    if estimate is None:
        return "–"
    half = NUM_STDERR * estimate.stderr
    if not (math.isfinite(estimate.mean) and 0 < half < math.inf):
        return show(estimate.mean)
    exponent = math.floor(math.log10(max(abs(estimate.mean), half)))
    shift = exponent if exponent >= _LARGE or exponent < _SMALL else 0
    leading = f"{half:.1e}"
    last = int(leading.split("e")[1]) - (1 if leading[0] == "1" else 0) - shift  # place of the last digit
    if last < -_LARGE:  # the error is negligible
        return show(estimate.mean, digits=_LARGE)
    values = (value / 10.0**shift for value in (estimate.mean, half))
    mean, error = (f"{round(value, -last):.{max(-last, 0)}f}" for value in values)
    text = f"{_signed(mean)} ± {error}"
    return f"({text})·{_power(shift)}" if shift else text


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


def _with_power(value: float, exponent: int, digits: int) -> str:
    mantissa = _signed(f"{value / 10.0**exponent:.{digits - 1}f}")
    return _power(exponent) if mantissa == "1" else f"{mantissa}·{_power(exponent)}"


def _power(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def _signed(text: str) -> str:
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text.lstrip("-")
