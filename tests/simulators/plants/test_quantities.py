from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from lqgap.errors import InvalidArgumentError
from lqgap.simulators.plants.quantities import (
    named_family,
    nonnegative,
    plus_or_minus,
    positive,
    real,
    whole,
)
from lqgap.systems import LQG

INTERVAL = (0.1, 0.2)


def family_of(kind, extent):
    """A family that writes down what it is built from, beside an uncertain pole."""
    seen = []

    @named_family()
    def make(
        *,
        pole: Annotated[Any, real("1/s")] = INTERVAL,
        quantity: Annotated[Any, kind],
        colour: Literal["red", "blue"] = "red",
    ) -> LQG:
        seen.append({"quantity": quantity, "colour": colour})
        return LQG([[pole]], [[1.0]], [[1.0]])

    return make(quantity=extent), seen


def test_known_quantities_are_held_and_uncertain_ones_are_parameters():
    family, seen = family_of(whole("steps"), [0, 1])
    assert family.names == ("pole", "quantity")
    assert family.units == ("1/s", "steps")
    np.testing.assert_allclose(family.system({"pole": 0.15, "quantity": 1}).A, [[0.15]])
    assert seen[-1] == {"quantity": 1, "colour": "red"}
    assert isinstance(seen[-1]["quantity"], int)
    family, seen = family_of(positive("kg"), 2)
    assert family.names == ("pole",)
    family.build(pole=0.5)
    assert seen[-1] == {"quantity": 2.0, "colour": "red"}


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int64(3), Fraction(6, 2)])
@pytest.mark.parametrize(
    ("kind", "plain"), [(positive, float), (nonnegative, float), (real, float), (whole, int)]
)
def test_every_way_to_write_a_number_is_read(kind, plain, value):
    family, seen = family_of(kind(), value)
    family.build(pole=0.5)
    assert seen[0]["quantity"] == 3
    assert type(seen[0]["quantity"]) is plain


@pytest.mark.parametrize(
    ("kind", "extent", "wanted"),
    [
        (positive(), 0, "positive"),
        (positive(), (0, 1), "positive"),
        (positive(), [1, -2], "positive"),
        (nonnegative(), -1e-9, "at least 0"),
        (nonnegative(), (-1, 1), "at least 0"),
        (real(), float("nan"), "finite"),
        (real(), (1, float("inf")), "finite"),
        (real(), 10**400, "finite"),
        (real(), "1", "finite"),
        (real(), "12", "finite"),
        (real(), ["1", "2"], "finite"),
        (real(), True, "finite"),
        (real(), None, "finite"),
        (real(), 1j, "finite"),
        (real(), {"low": 1, "high": 2}, "finite"),
        (real(), np.ones(2), "finite"),
        (whole(), 1.5, "whole and at least 0"),
        (whole(), -1, "whole and at least 0"),
        (whole(), (0, 3), "whole and at least 0"),
        (whole(least=1), [0, 5], "whole and at least 1"),
        (plus_or_minus(), 0.5, "1 or -1"),
        (plus_or_minus(), (-1, 1), "1 or -1"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_what_would(kind, extent, wanted):
    with pytest.raises(InvalidArgumentError, match=f"^quantity is .*expected a number.*{wanted}"):
        family_of(kind, extent)


@pytest.mark.parametrize("extent", [(1,), (1, 2, 3), (), [], (2, 1)])
def test_an_interval_has_two_ends_in_order_and_a_list_an_entry(extent):
    with pytest.raises(InvalidArgumentError, match="parameter quantity"):
        family_of(real(), extent)


def test_without_an_uncertain_quantity_there_is_no_family():
    @named_family()
    def make(*, mass: Annotated[Any, positive()], gain: Annotated[Any, real()]) -> LQG:
        return LQG([[mass]], [[gain]], [[1.0]])

    with pytest.raises(
        InvalidArgumentError, match=r"no family: give at least one of mass, gain as an interval"
    ):
        make(mass=1, gain=2)


def test_families_of_one_kind_share_a_program():
    traces = 0

    @named_family()
    def make(*, pole: Annotated[Any, real()] = INTERVAL, gain: Annotated[Any, real()] = 1.0) -> LQG:
        nonlocal traces
        traces += 1
        return LQG([[pole]], [[gain]], [[1.0]])

    make().grid(2)
    before = traces
    make(pole=(0.3, 0.4)).grid(2)
    assert traces == before
    np.testing.assert_array_equal(make(gain=2.0).grid(2).systems.B, [[[2.0]], [[2.0]]])
